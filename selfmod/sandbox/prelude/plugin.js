// What the body returned: is it a plugin, and what does it inject?

const FORMS = "\n  ✓ return (ctx) => { … }\n  ✓ return { name: '…', inject: […], apply(ctx) { … } }";
const INJECT_FORMS = "inject is a list of service names (['fs', 'web']), one name ('fs'), a map of name to config ({ fs: {} }), or { required: [...], optional: [...] }";

const notPlugin = (message) => codedError(message, 'NOT_A_PLUGIN');

const isClass = (f) => stringStartsWith(functionText(f), 'class');

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

// readInject accepts the four forms.
const readInject = (inject) => {
  const found = newMap();
  if (inject === undefined || inject === null) {
    return found;
  }
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
      return found;
    }
  }
  addList(found, inject, false);
  return found;
};

// classify makes the plugin of what the body returned; each property is read once.
const classify = (v) => {
  if (v === undefined) {
    throw notPlugin('temporary Plugin code returned `undefined` — did you forget `return`?' + FORMS);
  }
  let start;
  if (typeof v === 'function') {
    if (isClass(v)) {
      throw notPlugin('temporary Plugin code must `return` a Plugin: a function, or an object with an `apply(ctx)` method — got a class. Return its instance, or a function that makes one:\n  ✓ return { name: \'…\', apply(ctx) { new MyClass(ctx) } }');
    }
    start = v;
  } else if (isObject(v)) {
    start = v.apply;
  }
  if (typeof start !== 'function') {
    throw notPlugin('temporary Plugin code must `return` a Plugin: a function, or an object with an `apply(ctx)` method — got ' + kindOf(v) + FORMS);
  }
  const name = v.name;
  const inject = readInject(v.inject);
  const optional = newSet();
  inject.forEach((d) => {
    if (d.optional) {
      optional.add(d.name);
    }
  });
  return { __proto__: null, value: typeof v === 'function' ? undefined : v, apply: start, name: typeof name === 'string' ? name : '', inject, optional };
};

const loadedText = (p) => {
  let text = '{"name":' + quote(p.name) + ',"inject":[';
  let n = 0;
  p.inject.forEach((d) => {
    text += (n++ === 0 ? '' : ',') + '{"name":' + quote(d.name) + (d.optional ? ',"optional":true' : '') + (d.config === undefined ? '' : ',"config":' + d.config) + '}';
  });
  return text + ']}';
};

// load calls the body and keeps the plugin that it returned.
const load = (call, body) =>
  attempt(
    () => apply(body, undefined, [undefined, globalHarness, globalConsole]),
    (v) => {
      plugin = classify(v);
      finish(call, '=' + loadedText(plugin));
    },
    (e) => finish(call, failed(e)),
  );

// start runs apply once, with a fresh façade.
const start = (call, run, bindings) => {
  if (plugin === null) {
    throw new NativeError('no plugin is loaded');
  }
  const names = keysOf(bindings);
  for (let i = 0; i < names.length; i++) {
    setBinding(run, names[i], bindings[names[i]]);
  }
  const ctx = makeFacade(run);
  run.ctx = ctx;
  let result;
  try {
    result = apply(plugin.apply, plugin.value, [ctx, {}]);
  } catch (e) {
    return finish(call, failed(e));
  }
  gather(
    'apply',
    result,
    (d) => {
      if (!handles.has(d)) {
        const entry = addFunction(run, 'dispose', d);
        enlist(entry, 'effect', '{"label":"apply","fn":' + entry.id + '}');
      }
    },
    () => run.ended,
    (failure) => finish(call, failure === undefined ? '=' : failed(failure.e)),
  );
};
