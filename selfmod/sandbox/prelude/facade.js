// The façade ctx that apply receives: a Proxy that shows the verbs, the tools
// and the injected services of one run, and says what else would work.

const facades = newWeakMap(); // ctx → run

const CONTEXT_SHOWN = (service) =>
  'service ' + quoteName(service, 60) + ' returned a cordis Context, which the sandbox does not expose. Operate through your own plugin ctx (ctx.on / ctx.provide / ctx.tools.register) and the services you inject — never another context.';

const name60 = (k) => quoteName(k, 60);
// injecting is how a name is declared.
const injecting = (k) => {
  const q = name60(k);
  return "inject: ['" + stringSlice(q, 1, q.length - 1) + "'";
};

const notInjected = (name) =>
  new NativeError('service ' + name60(name) + ' is not injected. Declare it: ' + injecting(name) + ", …] on your plugin, so cordis parks this temporary Plugin if the provider is later unmounted.");
const absentError = (name) =>
  codedError('service ' + name60(name) + ' is not available now: its provider is not running. This temporary Plugin injects it and is parked until it is back.', 'SERVICE_ABSENT');
const readOnly = (what) => (_, key) => {
  throw typeError('sandbox ' + what + ' is read-only; cannot assign ' + (typeof key === 'symbol' ? symbolText(key) : name60(key)));
};
const unchangeable = (what) => () => {
  throw typeError('sandbox ' + what + ' is read-only');
};

// Members that code reads to find out what a value is, rather than to use it.
const isProbe = (key) => key === 'then' || key === 'toJSON' || key === 'constructor' || key === 'toString' || key === 'valueOf' || key === '$$typeof' || key === 'nodeType';

const isLive = (run, name) => askSync(run, 'live', '{"name":' + quote(name) + '}') === true;

// tools

const makeTools = (run) => {
  const members = {
    __proto__: null,
    register: (tool) => registerIn(run, tool),
    schemas: () => {
      active(run);
      return askSync(run, 'schemas', '{}');
    },
    get: (name) => {
      active(run);
      if (typeof name !== 'string') {
        throw typeError('ctx.tools.get(name) takes a string, got ' + kindOf(name));
      }
      return askSync(run, 'get', '{"name":' + quote(name) + '}');
    },
  };
  const tools = new NativeProxy(create(null), {
    __proto__: null,
    get(_, key) {
      if (typeof key === 'symbol') {
        return undefined;
      }
      active(run);
      const m = members[key];
      if (m !== undefined || isProbe(key)) {
        return m;
      }
      throw parts('teach').toolsNotExposed(key);
    },
    has: (_, key) => key === 'register' || key === 'schemas' || key === 'get',
    set: readOnly('ctx.tools'),
    defineProperty: unchangeable('ctx.tools'),
    deleteProperty: unchangeable('ctx.tools'),
    setPrototypeOf: unchangeable('ctx.tools'),
    preventExtensions: unchangeable('ctx.tools'),
  });
  facades.set(tools, run);
  labels.set(tools, 'ctx.tools');
  return tools;
};

// services

// valueLink decodes what has no handles, and encodes it for the host.
const valueLink = {
  __proto__: null,
  live: true,
  own: (v) => labels.has(v),
  out(v) {
    throw typeError(facades.has(v) ? CONTEXT_SHOWN('host') : 'a service of the host takes data only, not ' + kindOf(v));
  },
  in() {
    throw typeError('the value is not encoded as it should be');
  },
};

const readValue = (json) => (json === '' ? undefined : decodeValue(parseJSON(json)));
const decodeValue = (v) => (isObject(v) ? parts('peer').decode(v, valueLink) : v);
const encodeValue = (v) => (typeof v === 'string' ? quote(v) : parts('peer').encode(v, valueLink));

const makeHostService = (run, service, members) => {
  const methods = create(null);
  for (let i = 0; i < members.length; i++) {
    const method = members[i].name;
    const later = members[i].async === true;
    methods[method] = (...args) => {
      active(run);
      let json = '{"service":' + quote(service) + ',"method":' + quote(method) + ',"args":[';
      for (let j = 0; j < args.length; j++) {
        json += (j === 0 ? '' : ',') + encodeValue(args[j]);
      }
      json += ']}';
      return later ? askAsync(run, 'service', json, readValue) : readValue(answer(host('sync', current, '' + run.id, 'service', json)));
    };
  }
  const names = keysOf(methods);
  let known = '';
  for (let i = 0; i < names.length; i++) {
    known += (i === 0 ? '' : ', ') + names[i];
  }
  const proxy = new NativeProxy(create(null), {
    __proto__: null,
    get(_, key) {
      if (typeof key === 'symbol') {
        return undefined;
      }
      const m = methods[key];
      if (m !== undefined || isProbe(key)) {
        return m;
      }
      throw typeError('service ' + name60(service) + ' has no member ' + name60(key) + '. Available: ' + known);
    },
    has: (_, key) => typeof key === 'string' && methods[key] !== undefined,
    set: readOnly('service ' + name60(service)),
    defineProperty: unchangeable('service'),
    deleteProperty: unchangeable('service'),
    setPrototypeOf: unchangeable('service'),
    preventExtensions: unchangeable('service'),
  });
  labels.set(proxy, 'service ' + quote(service));
  return proxy;
};

const timerNames = ['timeout', 'interval', 'setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'throttle', 'debounce'];

const makeTimerService = (verbs) => {
  const timer = {};
  for (let i = 0; i < timerNames.length; i++) {
    show(timer, timerNames[i], verbs[timerNames[i]]);
  }
  return freeze(timer);
};

const setBinding = (run, name, json) => {
  run.bindings.set(name, { __proto__: null, json, value: undefined, made: false });
};

const makeService = (run, name, b) => {
  switch (own(b, 'kind')) {
    case 'value':
      return decodeValue(own(b, 'value'));
    case 'peer':
      return parts('peer').importHandle(run, b.mount, b.handle, name, false);
    case 'host':
      return makeHostService(run, name, b.members);
    case 'timer':
      return makeTimerService(run.verbs);
    case 'tools':
      return run.tools;
  }
  throw new NativeError('service ' + name60(name) + ' has a binding that is not known');
};

// serviceOf reads a declared service.
const serviceOf = (run, name, binding) => {
  if (binding.json === null) {
    if (plugin !== null && plugin.optional.has(name)) {
      return undefined;
    }
    throw absentError(name);
  }
  if (!binding.made) {
    binding.value = makeService(run, name, binding.json);
    binding.made = true;
  }
  return binding.value;
};

// verbs

const checkListener = (verb, event, fn, options) => {
  if (typeof event !== 'string' || event === '') {
    throw typeError('ctx.' + verb + '(event, fn): the event is a non-empty string, got ' + kindOf(event));
  }
  if (typeof fn !== 'function') {
    throw typeError('ctx.' + verb + '(' + name60(event) + ', fn): fn must be a function, got ' + kindOf(fn));
  }
  if (options !== undefined && options !== null && typeof options !== 'boolean' && !isRecord(options)) {
    throw typeError('ctx.' + verb + '(' + name60(event) + ', fn, options): options is { prepend: true } or true, got ' + kindOf(options));
  }
  return options === true || (isRecord(options) && options.prepend === true);
};

const listen = (run, verb, event, fn, options) => {
  active(run);
  const prepend = checkListener(verb, event, fn, options);
  const onlyOnce = verb === 'once' || (isRecord(options) && options.once === true);
  const entry = addFunction(run, 'listener', fn, onlyOnce);
  return enlist(
    entry,
    'on',
    '{"event":' + quote(event) + ',"fn":' + entry.id + (onlyOnce ? ',"once":true' : '') + (prepend ? ',"prepend":true' : '') + '}',
  );
};

const provide = (run, name, value) => {
  active(run);
  if (typeof name !== 'string' || name === '') {
    throw typeError('ctx.provide(name, value): the name is a non-empty string, got ' + kindOf(name));
  }
  if (isObject(value) && facades.has(value)) {
    throw typeError(CONTEXT_SHOWN(name));
  }
  const entry = addFunction(run, 'service', undefined, null);
  if (!isObject(value)) {
    try {
      return enlist(entry, 'provide', '{"name":' + quote(name) + ',"binding":{"kind":"value","value":' + encodeValue(value) + '}}');
    } catch (e) {
      dropFunction(entry);
      throw e;
    }
  }
  let e;
  try {
    e = parts('peer').exportValue(value, run, name);
    e.pinned++;
    const off = enlist(entry, 'provide', '{"name":' + quote(name) + ',"binding":{"kind":"peer","handle":' + e.handle + '}}');
    entry.extra = () => parts('peer').unpin(e);
    return off;
  } catch (error) {
    dropFunction(entry);
    if (e !== undefined) {
      parts('peer').unpin(e);
    }
    throw error;
  }
};

const getService = (run, name) => {
  active(run);
  if (typeof name !== 'string') {
    throw typeError('ctx.get(name) takes the name of a service, got ' + kindOf(name));
  }
  if (name === 'tools') {
    return run.tools;
  }
  const binding = run.bindings.get(name);
  if (binding !== undefined) {
    return serviceOf(run, name, binding);
  }
  if (isLive(run, name)) {
    throw notInjected(name);
  }
  return undefined;
};

const refuseWrite = readOnly('ctx');
const refuseShape = unchangeable('ctx');

// makeFacade returns the ctx of a run.
const makeFacade = (run) => {
  const verbs = create(null);
  for (let i = 0; i < timerNames.length; i++) {
    const verb = timerNames[i];
    verbs[verb] = (...args) => {
      run.timer ??= parts('timer').makeTimerVerbs(run);
      return apply(run.timer[verb], undefined, args);
    };
  }
  run.verbs = verbs;
  run.tools = makeTools(run);
  verbs.on = (event, fn, options) => listen(run, 'on', event, fn, options);
  verbs.once = (event, fn, options) => listen(run, 'once', event, fn, options);
  verbs.provide = (name, value) => provide(run, name, value);
  verbs.effect = (setup, label) => parts('effect').addEffect(run, setup, label);
  verbs.get = (name) => getService(run, name);
  const ctx = new NativeProxy(create(null), {
    __proto__: null,
    get(_, key) {
      if (typeof key === 'symbol' || key === 'then') {
        return undefined;
      }
      active(run);
      const verb = verbs[key];
      if (verb !== undefined) {
        return verb;
      }
      if (key === 'tools') {
        return run.tools;
      }
      const binding = run.bindings.get(key);
      if (binding !== undefined) {
        return serviceOf(run, key, binding);
      }
      if (isProbe(key)) {
        return undefined;
      }
      throw !parts('teach').isWithheld(key) && isLive(run, key) ? notInjected(key) : parts('teach').notExposed(key);
    },
    has: (_, key) => typeof key === 'string' && (key === 'tools' || verbs[key] !== undefined || run.bindings.has(key)),
    set: refuseWrite,
    defineProperty: refuseWrite,
    deleteProperty: refuseShape,
    setPrototypeOf: refuseShape,
    preventExtensions: refuseShape,
  });
  facades.set(ctx, run);
  labels.set(ctx, 'ctx of a temporary Plugin');
  return ctx;
};
