// What the body returned: is it a plugin, and what does it inject?

const FORMS = "\n  ✓ return (ctx) => { … }\n  ✓ return { name: '…', inject: […], apply(ctx) { … } }";
const notPlugin = (message) => codedError(message, 'NOT_A_PLUGIN');

const isClass = (f) => stringStartsWith(functionText(f), 'class');

// readInject accepts the four forms; all but a list of names are the part's.
const noInject = newMap();
const readInject = (inject) => {
  if (inject === undefined || inject === null) {
    return noInject;
  }
  const found = newMap();
  if (!isArray(inject)) {
    parts('inject').addForm(found, inject);
    return found;
  }
  const n = inject.length;
  for (let i = 0; i < n; i++) {
    const name = inject[i];
    if (typeof name !== 'string' || name === '' || mapSize(found) >= LIMITS.services) {
      parts('inject').addInject(found, name, false);
    } else if (!found.has(name)) {
      found.set(name, { __proto__: null, name, optional: false, config: undefined });
    }
  }
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
  return { __proto__: null, value: typeof v === 'function' ? undefined : v, apply: start, name: typeof name === 'string' ? name : '', inject, config: '' };
};

const loadedText = (p) => {
  let text = '{"name":' + quote(p.name) + ',"inject":[';
  if (p.inject === noInject) {
    return text + ']' + p.config + '}';
  }
  let n = 0;
  p.inject.forEach((d) => {
    text += (n++ === 0 ? '' : ',') + '{"name":' + quote(d.name) + (d.optional ? ',"optional":true' : '') + (d.config === undefined ? '' : ',"config":' + d.config) + '}';
  });
  return text + ']' + p.config + '}';
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

// open begins the load of a module: its top level runs on behalf of the call until
// loadModule.
const open = (id) => {
  file = true;
  newCall(id, null);
  current = id;
};

// loadModule keeps the plugin that a module exports when it has ended.
const loadModule = (id, exported, end) => {
  const call = calls.get(id);
  attempt(
    () => end,
    () => {
      plugin = parts('module').classifyModule(exported);
      finish(call, '=' + loadedText(plugin));
    },
    (e) => finish(call, failed(e)),
  );
  current = '';
  call.now = false;
  return call.text;
};

// start runs apply once, with a fresh façade.
const start = (call, run, bindings) => {
  if (plugin === null) {
    throw new NativeError('no plugin is loaded');
  }
  const names = keysOf(bindings);
  let config = {};
  for (let i = 0; i < names.length; i++) {
    if (names[i] === '') { // no service has that name
      config = bindings[''];
    } else {
      setBinding(run, names[i], bindings[names[i]]);
    }
  }
  const ctx = makeFacade(run);
  run.ctx = ctx;
  let result;
  try {
    result = nativeValue(apply(plugin.apply, plugin.value, [ctx, config]));
  } catch (e) {
    return finish(call, failed(e));
  }
  if (result === undefined || result === null) {
    return finish(call, '=');
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
