// A part, with codec.js and peer.js: the machine that is asked.

let lastPromise = 0;

const keyOf = (k) => (k[0] === '@' ? wellKnown[stringSlice(k, 1)] : stringSlice(k, 1));

const callMember = (e, f, key, link, a) => {
  if (typeof f !== 'function') {
    const name = typeof key === 'string' ? key : symbolText(key);
    throw typeError(name + ' is not a function' + (e.service === '' ? '' : ' of service "' + e.service + '"'));
  }
  // In its place: the elements are there, so no setter of a prototype is asked.
  for (let i = 0; i < a.length; i++) {
    const v = a[i];
    if (typeof v === 'object' && v !== null) {
      a[i] = decode(v, link);
    }
  }
  return a;
};

// perform does what a request asks for; memberAnswer stands for "it is a function".
const memberAnswer = freeze({ __proto__: null });
const perform = (e, r, link) => {
  const v = e.v;
  const k = hasOwn(r, 'k') ? r.k : undefined;
  let key;
  if (k !== undefined) {
    if (e.asked !== k) {
      e.key = keyOf(k);
      e.asked = k;
    }
    key = e.key;
  }
  switch (r.op) {
    case 'get': {
      const m = reflectGet(v, key);
      return typeof m === 'function' && !importedRecords.has(m) ? memberAnswer : m;
    }
    case 'call': {
      const f = v[key];
      return apply(f, v, callMember(e, f, key, link, r.a));
    }
    case 'apply':
      return apply(v, undefined, callMember(e, v, 'the value', link, r.a));
    case 'new': {
      const f = key === undefined ? v : v[key];
      return construct(f, callMember(e, f, key === undefined ? 'the value' : key, link, r.a));
    }
    case 'set':
      if (!reflectSet(v, key, decode(r.a[0], link))) {
        throw typeError('cannot assign ' + quoteName('' + key, 60));
      }
      return undefined;
    case 'has':
      return reflectHas(v, key);
    case 'own': {
      const d = getOwnPropertyDescriptor(v, key);
      return d !== undefined && d.enumerable === true;
    }
    case 'keys':
      return keysOf(v);
  }
  throw typeError('a request that is not known');
};

const reply = (v, link) => {
  try {
    let json = typeof v === 'string' ? quote(v) : v === memberAnswer ? '{"$":"m"}' : v === undefined ? '' : encode(v, link);
    if (link.run.frees.has(link.mount)) {
      const frees = takeFrees(link.run, link.mount);
      json = '{"$":"+","f":' + frees + (json === '' ? '}' : ',"v":' + json + '}');
    }
    return '=' + json;
  } catch (e) {
    return failed(e);
  }
};

// servePeer answers another machine. caller is "mount:run" of the one that asks.
const servePeer = (caller, json) => {
  try {
    return answerPeer(caller, json);
  } catch (e) {
    return failed(e);
  }
};

const answerPeer = (caller, json) => {
  const r = parseJSON(json);
  if ('f' in r && hasOwn(r, 'f')) {
    lost(caller, mountOf(caller), r.f);
  }
  const e = exported.get(r.h);
  if (e === undefined || e.run.ended) {
    return '!{"name":"Error","message":"the object is no longer shared","code":"' + GONE + '"}';
  }
  if (e.link === null || e.link.caller !== caller) {
    e.link = newLink(+mountOf(caller), caller, e.run, e.service);
  }
  const link = e.link;
  let v;
  try {
    v = perform(e, r, link);
  } catch (error) {
    return failed(error);
  }
  if (!isObject(v) || v === memberAnswer || facades.has(v) || (importedRecords.has(v) && r.op === 'get')) {
    return reply(v, link);
  }
  let text = '';
  let later = '';
  const finish = (t) => {
    if (later === '') {
      text = t;
    } else {
      host('peerdone', later, t);
    }
  };
  const pending = settled(
    v,
    (value) => finish(reply(value, link)),
    (error) => finish(failed(error)),
  );
  if (!pending) {
    return text;
  }
  later = '' + ++lastPromise;
  return '~' + later;
};

// retirePeers ends what a run exported and imported.
const retirePeers = (run) => {
  exported.forEach((e) => {
    if (e.run === run) {
      free(e);
    }
  });
  imports.forEach((rec, key) => {
    if (rec.run === run) {
      imports.delete(key);
    }
  });
  run.frees = newMap();
};

// unpin lets a provided object go.
const unpin = (e) => {
  e.pinned--;
  if (e.pinned === 0 && e.held === 0) {
    free(e);
  }
};

return { encode, decode, structuredClone, importHandle, exportValue, unpin, servePeer, dropCaller, retirePeers };
