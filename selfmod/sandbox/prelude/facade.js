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
  new NativeError('service ' + name60(name) + ' is not injected. Declare it: ' + injecting(name) + told(", …] on your plugin, so cordis parks this temporary Plugin if the provider is later unmounted."));
const absentError = (name) =>
  codedError('service ' + name60(name) + told(' is not available now: its provider is not running. This temporary Plugin injects it and is parked until it is back.'), 'SERVICE_ABSENT');
const readOnly = (what) => (_, key) => {
  throw typeError('sandbox ' + what + ' is read-only; cannot assign ' + (typeof key === 'symbol' ? symbolText(key) : name60(key)));
};
const unchangeable = (what) => () => {
  throw typeError('sandbox ' + what + ' is read-only');
};

// Members that code reads to find out what a value is, rather than to use it.
const isProbe = (key) => key === 'then' || key === 'toJSON' || key === 'constructor' || key === 'toString' || key === 'valueOf' || key === '$$typeof' || key === 'nodeType';

const isLive = (run, name) => askSync(run, 'live', '{"name":' + quote(name) + '}') === true;

// toolsOf makes ctx.tools when it is first asked for.
const toolsOf = (run) => (run.tools ??= parts('tool').makeTools(run));

// services

const setBinding = (run, name, json) => {
  run.bindings.set(name, { __proto__: null, json, value: undefined, made: false });
};

// serviceOf reads a declared service.
const serviceOf = (run, name, binding) => {
  if (binding.json === null) {
    const injected = plugin === null ? undefined : plugin.inject.get(name);
    if (injected !== undefined && injected.optional) {
      return undefined;
    }
    throw absentError(name);
  }
  if (!binding.made) {
    binding.value = parts('service').makeService(run, name, binding.json);
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

const getService = (run, name) => {
  active(run);
  if (typeof name !== 'string') {
    throw typeError('ctx.get(name) takes the name of a service, got ' + kindOf(name));
  }
  if (name === 'tools') {
    return toolsOf(run);
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

// timerVerb makes one of the timer verbs when it is first asked for.
const timerNames = {
  __proto__: null,
  timeout: true, interval: true, setTimeout: true, setInterval: true, clearTimeout: true, clearInterval: true, throttle: true, debounce: true,
};
const timerVerb = (run, name) =>
  timerNames[name] &&
  (run.verbs[name] = (...args) => {
    run.timer ??= parts('timer').makeTimerVerbs(run);
    return apply(run.timer[name], undefined, args);
  });

// verbNames are the other verbs; makeVerb makes one when it is first looked at.
const verbNames = { __proto__: null, on: true, once: true, provide: true, effect: true, get: true };
const makeVerb = (run, name) => {
  switch (name) {
    case 'on':
      return (run.verbs.on = (event, fn, options) => listen(run, 'on', event, fn, options));
    case 'once':
      return (run.verbs.once = (event, fn, options) => listen(run, 'once', event, fn, options));
    case 'provide':
      return (run.verbs.provide = (service, value) => parts('service').provide(run, service, value));
    case 'effect':
      return (run.verbs.effect = (setup, label) => parts('effect').addEffect(run, setup, label));
    case 'get':
      return (run.verbs.get = (service) => getService(run, service));
  }
  return timerVerb(run, name);
};

// facadeHandler is what the handlers of all ctx inherit; each has its run.
const facadeHandler = freeze({
  __proto__: null,
  get(_, key) {
    if (typeof key === 'symbol' || key === 'then') {
      return undefined;
    }
    const run = this.run;
    active(run);
    if (verbNames[key] === true || timerNames[key] === true) {
      return run.verbs[key] || makeVerb(run, key);
    }
    if (key === 'tools') {
      return toolsOf(run);
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
  has(_, key) {
    return typeof key === 'string' && (key === 'tools' || verbNames[key] === true || timerNames[key] === true || this.run.bindings.has(key));
  },
  set: refuseWrite,
  defineProperty: refuseWrite,
  deleteProperty: refuseShape,
  setPrototypeOf: refuseShape,
  preventExtensions: refuseShape,
});

// makeFacade returns the ctx of a run.
const makeFacade = (run) => {
  const ctx = new NativeProxy(create(null), { __proto__: facadeHandler, run });
  facades.set(ctx, run);
  labels.set(ctx, told('ctx of a temporary Plugin'));
  return ctx;
};
