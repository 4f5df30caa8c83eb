// A part: services of the host, and what the plugin provides.

const {
  CONTEXT_SHOWN, NativeError, NativeProxy, active, addFunction, answer, askAsync, create, currentCall, dropFunction,
  enlist, facades, freeze, host, isObject, isProbe, keysOf, kindOf, labels, name60, own, parseJSON, parts, quote,
  readOnly, show, timerNames, timerVerb, toolsOf, typeError, unchangeable,
} = core;

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
      return later ? askAsync(run, 'service', json, readValue) : readValue(answer(host('sync', currentCall(), '' + run.id, 'service', json)));
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

const makeTimerService = (run) => {
  const timer = {};
  for (let names = keysOf(timerNames), i = 0; i < names.length; i++) {
    show(timer, names[i], run.verbs[names[i]] || timerVerb(run, names[i]));
  }
  return freeze(timer);
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
      return makeTimerService(run);
    case 'tools':
      return toolsOf(run);
  }
  throw new NativeError('service ' + name60(name) + ' has a binding that is not known');
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

return { makeService, provide };
