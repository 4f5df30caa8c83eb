// A part: services of the host, and what the plugin provides.

const {
  CONTEXT_SHOWN, FunctionPrototype, LIMITS, NativeError, ObjectPrototype, active, addFunction, apply, cut, dropFunction, enlist, facades, freeze,
  functionText, getOwnPropertyDescriptor, getPrototypeOf, hasOwn, isArray, isObject, keysOf, kindOf, labels, name60, newSet, own, ownKeys,
  parts, quote, show, timerNames, timerVerb, toolsOf, typeError,
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

const decodeValue = (v) => (isObject(v) ? parts('peer').decode(v, valueLink) : v);
const encodeValue = (v) => (typeof v === 'string' ? quote(v) : parts('peer').encode(v, valueLink));

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
      return parts('host').makeHostService(run, name, b);
    case 'timer':
      return makeTimerService(run);
    case 'tools':
      return toolsOf(run);
  }
  throw new NativeError('service ' + name60(name) + ' has a binding that is not known');
};

// membersText tells what a provided value has, for reports: [name, kind, arity] and
// of a function how it begins, its own and what its class gives it. No getter is asked.
const membersText = (value) => {
  const seen = newSet();
  let text = '';
  let n = 0;
  for (let at = value; at !== null && at !== ObjectPrototype && at !== FunctionPrototype && n < LIMITS.members; at = getPrototypeOf(at)) {
    const keys = ownKeys(at);
    for (let i = 0; i < keys.length && n < LIMITS.members; i++) {
      const key = keys[i];
      if (typeof key !== 'string' || key === 'constructor' || seen.has(key) || (typeof value === 'function' && (key === 'length' || key === 'name' || key === 'prototype'))) {
        continue;
      }
      seen.add(key);
      const d = getOwnPropertyDescriptor(at, key);
      const fn = d !== undefined && hasOwn(d, 'value') && typeof d.value === 'function' ? d.value : undefined;
      const arity = fn === undefined ? undefined : own(getOwnPropertyDescriptor(fn, 'length') || {}, 'value');
      text += (n === 0 ? '' : ',') + '[' + quote(cut(key, 200)) + ',"' + (fn === undefined ? 'value' : 'function') + '",' + (typeof arity === 'number' ? arity : 0) + (fn === undefined ? '' : ',' + quote(cut(functionText(fn), 120))) + ']';
      n++;
    }
  }
  return '[' + text + ']';
};
const membersOf = (value) => {
  if (isArray(value) || labels.has(value)) {
    return '[]';
  }
  try {
    return membersText(value);
  } catch {
    return '[]'; // a proxy that refuses to be looked at
  }
};

const provide = (run, name, value) => {
  active(run);
  if (typeof name !== 'string' || name === '') {
    throw typeError('ctx.provide(name, value): the name is a non-empty string, got ' + kindOf(name));
  }
  if (isObject(value) && facades.has(value)) {
    throw typeError(CONTEXT_SHOWN(name));
  }
  // The function is how the host reaches the value for plugins of another worker.
  const entry = addFunction(run, 'service', (key, args) => {
    const member = value[key];
    return typeof member === 'function' ? apply(member, value, args) : member;
  }, null);
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
    const off = enlist(entry, 'provide', '{"name":' + quote(name) + ',"relay":' + entry.id + ',"members":' + membersOf(value) + ',"binding":{"kind":"peer","handle":' + e.handle + '}}');
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
