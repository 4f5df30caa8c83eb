// A part, with codec.js and peer.js: the machine that is asked.

let lastPromise = 0;

const keyOf = (k) => (k[0] === '@' ? wellKnown[stringSlice(k, 1)] : stringSlice(k, 1));

// heads: text of a request → { h, op, key, named }, of the last ones. named says that
// it has a key.
const heads = newMap();
const MAX_HEADS = 100;

const readHead = (caller, text) => {
  const r = parseJSON(text);
  const k = own(r, 'k');
  const head = { __proto__: null, h: own(r, 'h'), op: own(r, 'op'), key: k === undefined ? undefined : keyOf(k), named: k !== undefined };
  const frees = own(r, 'f');
  if (frees !== undefined) {
    lost(caller, mountOf(caller), frees);
    return head;
  }
  if (mapSize(heads) >= MAX_HEADS) {
    heads.forEach((_, old) => heads.delete(old));
  }
  heads.set(text, head);
  return head;
};

const readArgs = (json, link) => {
  const a = parseJSON(json);
  if (!isArray(a)) {
    return [decode(a, link)];
  }
  // In its place: the elements are there, so no setter of a prototype is asked.
  for (let i = 0, n = a.length; i < n; i++) {
    const v = a[i];
    if (typeof v === 'object' && v !== null) {
      a[i] = decode(v, link);
    }
  }
  return a;
};

const checkCallable = (e, f, key) => {
  if (typeof f !== 'function') {
    const name = typeof key === 'string' ? key : symbolText(key);
    throw typeError(name + ' is not a function' + (e.service === '' ? '' : ' of service "' + e.service + '"'));
  }
};

// perform does what a request asks for; memberAnswer stands for "it is a function".
const memberAnswer = freeze({ __proto__: null });
const perform = (e, r, args, link) => {
  const v = e.v;
  const key = r.key;
  switch (r.op) {
    case 'call': {
      const f = v[key];
      if (typeof f !== 'function') {
        checkCallable(e, f, key);
      }
      return apply(f, v, readArgs(args, link));
    }
    case 'get': {
      const m = reflectGet(v, key);
      return typeof m === 'function' && !importedRecords.has(m) ? memberAnswer : m;
    }
    case 'apply':
      checkCallable(e, v, 'the value');
      return apply(v, undefined, readArgs(args, link));
    case 'new': {
      const f = r.named ? v[key] : v;
      checkCallable(e, f, r.named ? key : 'the value');
      return construct(f, readArgs(args, link));
    }
    case 'set':
      if (!reflectSet(v, key, readArgs(args, link)[0])) {
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
    const json = typeof v === 'string' ? quote(v) : v === undefined ? '' : v === memberAnswer ? '{"$":"m"}' : encode(v, link);
    const frees = freesWaiting === 0 ? '' : takeFrees(link.run, link.mount);
    return frees === '' ? '=' + json : '={"$":"+","f":' + frees + (json === '' ? '}' : ',"v":' + json + '}');
  } catch (e) {
    return failed(e);
  }
};

// servePeer answers another machine. caller is "mount:run" of the one that asks.
const servePeer = (caller, text, args) => {
  let link;
  let v;
  let op;
  try {
    const r = heads.get(text) || readHead(caller, text);
    const e = exported.get(r.h);
    if (e === undefined || e.run.ended) {
      return '!{"name":"Error","message":"the object is no longer shared","code":"' + GONE + '"}';
    }
    link = e.link;
    if (link === null || link.caller !== caller) {
      e.link = link = newLink(+mountOf(caller), caller, e.run, e.service);
    }
    op = r.op;
    v = perform(e, r, args, link);
    if (!isObject(v) || v === memberAnswer || facades.has(v) || (importedRecords.has(v) && op === 'get')) {
      return reply(v, link);
    }
  } catch (e) {
    return failed(e);
  }
  return replyLater(v, link);
};

// replyLater is reply for what may be a promise.
const replyLater = (v, link) => {
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
  if (run.frees !== null) {
    freesWaiting -= mapSize(run.frees);
    run.frees = null;
  }
};

// unpin lets a provided object go.
const unpin = (e) => {
  e.pinned--;
  if (e.pinned === 0 && e.held === 0) {
    free(e);
  }
};

return { encode, decode, structuredClone, importHandle, exportValue, unpin, servePeer, dropCaller, retirePeers };
