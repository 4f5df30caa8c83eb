// What most mounts never use is not in every machine: each part is a script of
// its own that the worker runs here when it is first asked for. Its value is a
// function that takes core, the names of the other files that parts use, and
// returns what the part gives.
//
// PARTS has them all when they came with this script; otherwise the worker
// answers __host('part', name) with the dispatcher's operation of that name.

const made = create(null);

const parts = (name) => made[name] || readPart(name);

const readPart = (name) => {
  if (PARTS === null) {
    host('part', name);
  } else {
    addPart(name, PARTS[name]);
  }
  const part = made[name];
  if (part === undefined) {
    throw new NativeError('the part ' + quote(name) + ' of the sandbox could not be read');
  }
  return part;
};

const addPart = (name, make) => {
  if (made[name] === undefined) {
    if (core.classOf === undefined) {
      for (let names = keysOf(partMethods), i = 0; i < names.length; i++) {
        core[names[i]] = uncurry(partMethods[names[i]]);
      }
    }
    made[name] = make(core);
  }
};
