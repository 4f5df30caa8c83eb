// Runs, functions that the host may enter, and effects.
//
// A run is one execution of the plugin's apply; its façade, the functions that
// it registered and what it shares end with it. The host knows a function by its
// number; an entry is { fn, kind, run, effect, gone }.

const runs = newMap(); // id → run
const functions = newMap(); // number → entry
let lastFunction = 0;

// plugin is what load found: { value, apply, name, inject }.
let plugin = null;

const newRun = (id) => ({
  __proto__: null,
  id, // the digits that Go gave
  timer: null, // its timer verbs, once they are used
  tools: null, // its ctx.tools, likewise
  verbs: create(null), // of its ctx, once they are looked at
  ended: false,
  bindings: newMap(),
  frees: null, // what peer.js keeps, likewise
  ending: newSet(), // called with the error when the run ends
});

const endedError = () => {
  const who = plugin === null || plugin.name === '' ? told('this temporary Plugin') : told('the temporary Plugin ') + quoteName(plugin.name, 80);
  return codedError(
    'this ctx belongs to a run of ' + who + ' that has ended: it was unmounted, or restarted because a service that it injects changed. Use the ctx that the current run of apply(ctx) received.',
    'CONTEXT_ENDED',
  );
};

const contextDisposed = () => new NativeError('Context has been disposed');

const active = (run) => {
  if (run.ended) {
    throw endedError();
  }
};

const addFunction = (run, kind, fn, extra) => {
  const id = ++lastFunction;
  const entry = { __proto__: null, id, kind, run, fn, extra, effect: -1, gone: false, off: null };
  functions.set(id, entry);
  return entry;
};

const dropFunction = (entry) => {
  entry.gone = true;
  functions.delete(entry.id);
};

// handles: a disposer that we gave out → its entry. Giving one back to the
// runtime (returning or yielding it) registers nothing twice.
const handles = newWeakMap();

const undo = (entry) => {
  if (entry.off !== null) {
    return entry.off;
  }
  if (entry.gone || entry.run.ended) {
    return (entry.off = newResolved());
  }
  if (entry.kind !== 'dispose') {
    dropFunction(entry); // nothing that is still queued reaches it
  }
  entry.off = askAsync(entry.run, 'dispose', '{"effect":' + entry.effect + '}');
  if (entry.kind === 'service') {
    // Until its consumers have unwound they are still served.
    subscribe(entry.off, entry.extra, entry.extra);
  }
  return entry.off;
};
const newResolved = () => new NativePromise((resolve) => resolve());

const newHandle = (entry) => {
  const off = () => undo(entry);
  handles.set(off, entry);
  return off;
};

// enlist registers an entry with the host; what the host refuses leaves nothing.
const enlist = (entry, verb, json) => {
  let effect;
  try {
    effect = askSync(entry.run, verb, json).effect;
  } catch (e) {
    dropFunction(entry);
    throw e;
  }
  entry.effect = effect;
  return newHandle(entry);
};

// gather hands the disposers in what apply returned to take, then calls done()
// or done(failure). Nothing, a function and promises of them are told apart here;
// generators, and what is invalid, by the part.
const gather = (what, v, take, stopped, done) => {
  if (v === undefined || v === null) {
    return done();
  }
  if (typeof v === 'function') {
    try {
      take(v);
    } catch (e) {
      return done({ __proto__: null, e });
    }
    return done();
  }
  if (isNativePromise(v)) {
    settled(
      v,
      (r) => gather(what, r, take, stopped, done),
      (e) => done({ __proto__: null, e }),
    );
    return;
  }
  parts('effect').gatherSteps(what, v, take, stopped, done);
};
