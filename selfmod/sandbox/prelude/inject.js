// A part: the forms of inject that are no plain list of names, and what is wrong
// with one.

const {
  LIMITS, ObjectPrototype, getPrototypeOf, isArray, isRecord, kindOf, losslessText, lossy, mapSize, messageOf, notPlugin,
  own, ownKeys, parts,
} = core;

const INJECT_FORMS = "inject is a list of service names (['fs', 'web']), one name ('fs'), a map of name to config ({ fs: {} }), or { required: [...], optional: [...] }";

// addInject merges one dependency; required wins over optional.
const addInject = (found, name, optional, config) => {
  if (typeof name !== 'string' || name === '') {
    throw notPlugin(INJECT_FORMS + '; a name is a non-empty string, got ' + kindOf(name));
  }
  const known = found.get(name);
  if (known !== undefined) {
    known.optional = known.optional && optional;
    known.config = known.config === undefined ? config : known.config;
    return;
  }
  if (mapSize(found) >= LIMITS.services) {
    throw notPlugin('a plugin injects at most ' + LIMITS.services + ' services');
  }
  found.set(name, { __proto__: null, name, optional, config });
};

const addList = (found, v, optional) => {
  if (typeof v === 'string') {
    return addInject(found, v, optional);
  }
  if (isArray(v)) {
    const n = v.length;
    for (let i = 0; i < n; i++) {
      addInject(found, v[i], optional);
    }
    return;
  }
  if (!isRecord(v)) {
    throw notPlugin(INJECT_FORMS + ', got ' + kindOf(v));
  }
  const proto = getPrototypeOf(v);
  if (proto !== ObjectPrototype && proto !== null) {
    throw notPlugin(INJECT_FORMS + ', got an instance of ' + (parts('exact').className(v) || 'a class'));
  }
  const keys = ownKeys(v);
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] === 'symbol') {
      throw notPlugin(INJECT_FORMS + ', got a symbol as a name');
    }
    const config = v[keys[i]];
    addInject(found, keys[i], optional, config === undefined ? undefined : configText(keys[i], config));
  }
};

const configText = (name, config) => {
  try {
    return losslessText(config, 'inject' + parts('exact').memberPath(name));
  } catch (e) {
    throw lossy(e) === undefined ? e : notPlugin('the config of an injected service must be lossless JSON data: ' + messageOf(e));
  }
};

// addForm reads the forms that are no list.
const addForm = (found, inject) => {
  if (isRecord(inject)) {
    const keys = ownKeys(inject);
    let split = keys.length > 0;
    for (let i = 0; i < keys.length; i++) {
      split = split && (keys[i] === 'required' || keys[i] === 'optional');
    }
    if (split) {
      const required = own(inject, 'required');
      const optional = own(inject, 'optional');
      if (required !== undefined && required !== null) {
        addList(found, required, false);
      }
      if (optional !== undefined && optional !== null) {
        addList(found, optional, true);
      }
      return;
    }
  }
  addList(found, inject, false);
};

return { addInject, addForm };
