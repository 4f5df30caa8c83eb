// A part, with hostcall.js: what a plugin has of the host: services, objects and
// iterators. What is no longer used is given back.

// What was lost since the last time, and is told in one message.
const lost = newMap(); // run → list of numbers
const tellLost = () => {
  lost.forEach((ids, run) => {
    lost.delete(run);
    if (run.ended) {
      return;
    }
    let text = '';
    for (let i = 0; i < ids.length; i++) {
      text += (i === 0 ? '' : ',') + ids[i];
    }
    host('send', currentCall(), '' + run.id, 'drop', '{"h":[' + text + ']}');
  });
};

const registry = new NativeRegistry((held) => {
  let ids = lost.get(held.run);
  if (ids === undefined) {
    ids = list();
    lost.set(held.run, ids);
    subscribe(resolved, tellLost);
  }
  ids[ids.length] = held.id;
});
const hold = (v, run, id) => registerWith(registry, v, { __proto__: null, run, id });

// typesOf a run: name of a type of objects → its members, as makeMembers gives them.
const typesOf = newWeakMap();

const reader = (run) => (text) => readResult(run, text);

// makeMembers reads members: [name, kind, signature].
const makeMembers = (rows) => {
  const members = create(null);
  for (let i = 0; i < rows.length; i++) {
    const name = rows[i][0];
    members[name] = { __proto__: null, name, kind: rows[i][1], sig: rows[i][2], head: ',"m":' + quote(name) + ',"a":' };
  }
  return members;
};

// stubOf is the function of a method.
const stubOf = (t, m, keep) => {
  let stub;
  switch (m.kind) {
    case 'sync':
      stub = (...args) => callSync(t, m, args, keep);
      break;
    case 'iterator':
      stub = (...args) => makeIterable(t, m, args, keep);
      break;
    default:
      stub = (...args) => callAsync(t, m, args, keep);
  }
  hide(stub, 'name', m.name);
  return stub;
};

const absentMember = (t, key) => {
  const names = keysOf(t.members);
  let known = '';
  for (let i = 0; i < names.length; i++) {
    known += (i === 0 ? '' : ', ') + names[i];
  }
  const near = nearest(key, names);
  return typeError(t.what + ' has no member ' + name60(key) + (near === '' ? '.' : '; did you mean ' + name60(near) + '?') + ' Available: ' + known);
};

const lowered = (s) => {
  let out = '';
  for (let i = 0; i < s.length; i++) {
    const c = charCodeAt(s, i);
    out += c > 64 && c < 91 ? 'abcdefghijklmnopqrstuvwxyz'[c - 65] : s[i];
  }
  return out;
};

// nearest is the name that the fewest changes of letters make of key: a few, or of
// those that begin with the same word; '': none is near.
const nearest = (key, names) => {
  let best = '';
  let least = (key.length - (key.length % 3)) / 3 + 2;
  let alike = '';
  let leastAlike = 100;
  const word = firstWord(key);
  for (let i = 0; key.length <= 60 && i < names.length; i++) {
    const d = distance(lowered(key), lowered(names[i]));
    if (d < least) {
      best = names[i];
      least = d;
    }
    if (d < leastAlike && word.length > 2 && firstWord(names[i]) === word) {
      alike = names[i];
      leastAlike = d;
    }
  }
  return best === '' ? alike : best;
};

const firstWord = (name) => {
  let n = 0;
  while (n < name.length && charCodeAt(name, n) > 96) {
    n++;
  }
  return stringSlice(name, 0, n);
};

const distance = (a, b) => {
  let before = list();
  let last = list();
  for (let j = 0; j <= b.length; j++) {
    last[j] = j;
  }
  for (let i = 1; i <= a.length; i++) {
    const row = list();
    row[0] = i;
    for (let j = 1; j <= b.length; j++) {
      let d = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      d = row[j - 1] + 1 < d ? row[j - 1] + 1 : d;
      d = last[j] + 1 < d ? last[j] + 1 : d;
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] && before[j - 2] + 1 < d) {
        d = before[j - 2] + 1;
      }
      row[j] = d;
    }
    before = last;
    last = row;
  }
  return last[b.length];
};

// read gives a member of a target: { run, read, head, label, what, members, stubs,
// promises, ref }.
const read = (t, key) => {
  const stub = t.stubs[key];
  if (stub !== undefined) {
    return stub;
  }
  const m = t.members[key];
  if (m === undefined) {
    if (isProbe(key)) {
      return undefined;
    }
    throw absentMember(t, key);
  }
  switch (m.kind) {
    case 'property':
      return callSync(t, m, []);
    case 'promise':
      return (t.promises[key] ??= callAsync(t, m, []));
  }
  return (t.stubs[key] = stubOf(t, m, t.ref === null ? undefined : weakDeref(t.ref)));
};

const isValue = (m) => m !== undefined && (m.kind === 'property' || m.kind === 'promise');

// shownKeys are all members of a service, and of an object what it has besides
// methods, so that it can be looked at as JSON.
const shownKeys = (t) => {
  const names = keysOf(t.members);
  const keys = [];
  for (let i = 0; i < names.length; i++) {
    if (t.ref === null || t.members[names[i]].kind === 'property') {
      show(keys, keys.length, names[i]);
    }
  }
  return keys;
};

// No methods in it: a method knows its object, and what is in such a circle is not
// given back at once.
const makeProxy = (t) => {
  const refuse = unchangeable(t.what);
  const proxy = new NativeProxy({}, {
    __proto__: null,
    get: (_, key) => (typeof key === 'symbol' ? undefined : read(t, key)),
    has: (_, key) => typeof key === 'string' && t.members[key] !== undefined,
    ownKeys: () => shownKeys(t),
    getOwnPropertyDescriptor: (_, key) =>
      typeof key === 'string' && t.members[key] !== undefined ? { __proto__: null, value: read(t, key), writable: false, enumerable: true, configurable: true } : undefined,
    set: readOnly(t.what),
    defineProperty: refuse,
    deleteProperty: refuse,
    setPrototypeOf: refuse,
    preventExtensions: refuse,
  });
  return proxy;
};

// makeHostService is a service of the host, by its binding.
const makeHostService = (run, name, b) => {
  let types = typesOf.get(run);
  if (types === undefined) {
    types = create(null);
    typesOf.set(run, types);
    run.ending.add(() => forgetFunctions(run));
  }
  const rows = own(b, 'types');
  for (let names = keysOf(rows), i = 0; i < names.length; i++) {
    types[names[i]] = makeMembers(rows[names[i]]);
  }
  const proxy = makeProxy({
    __proto__: null, run, read: reader(run), head: '{"s":' + quote(name), label: 'ctx.' + name, what: 'service ' + name60(name), members: makeMembers(b.members),
    stubs: create(null), promises: create(null), ref: null,
  });
  labels.set(proxy, 'service ' + quote(name));
  return proxy;
};

// makeObject is an object that a service returned.
const makeObject = (run, id, type) => {
  const t = {
    __proto__: null, run, read: reader(run), head: '{"h":' + id, label: type, what: type, members: typesOf.get(run)[type], stubs: create(null), promises: create(null), ref: null,
  };
  const proxy = makeProxy(t);
  t.ref = new NativeWeakRef(proxy);
  labels.set(proxy, 'object of type ' + type);
  hold(proxy, run, id);
  return proxy;
};

const disposeMember = { __proto__: null, name: 'dispose', kind: 'async', sig: 'dispose(): Promise<void>', head: ',"m":"dispose","a":' };

// makeDispose is a function that undoes what a method has begun.
const makeDispose = (run, id) => {
  const t = { __proto__: null, run, read: reader(run), head: '{"h":' + id, label: 'dispose', what: 'dispose' };
  let done;
  const dispose = () => (done ??= callAsync(t, disposeMember, [], dispose));
  hold(dispose, run, id);
  return dispose;
};

// makeIterable is what an iterator's method returns; each iteration is a call.
const makeIterable = (t, m, args, keep) => {
  active(t.run);
  const iterable = {};
  hide(iterable, NativeSymbol.asyncIterator, () => makeIterator(t, m, args, keep));
  return iterable;
};

const makeIterator = (t, m, args, keep) => {
  const run = t.run;
  const s = { __proto__: null, wanted: list(), values: list(), at: 0, busy: false, begun: false, over: false, id: 0, failure: null, c: null, ref: null };
  const result = (value, done) => {
    const r = {};
    show(r, 'value', value);
    show(r, 'done', done);
    return r;
  };
  const take = () => {
    const w = s.wanted[0];
    for (let i = 1; i < s.wanted.length; i++) {
      s.wanted[i - 1] = s.wanted[i];
    }
    s.wanted.length--;
    return w;
  };
  const end = (failure) => {
    s.over = true;
    s.failure = failure;
    s.id = 0;
  };
  const arrived = (batch) => {
    s.busy = false;
    if (isObject(batch)) {
      s.values = s.over ? list() : batch.v;
      s.at = 0;
      if (own(batch, 'd') === true) {
        end(null);
      }
    }
    pump();
  };
  const broke = (e) => {
    s.busy = false;
    if (!s.over) {
      end({ __proto__: null, e });
    }
    pump();
  };
  // A first answer begins with the iteration's number and a line's end.
  const readBatch = (text) => {
    if (text !== '' && text[0] === '#') {
      const lineEnd = stringIndexOf(text, '\n');
      s.id = +stringSlice(text, 1, lineEnd);
      if (s.over) { // it was broken off before it had begun
        stop();
      } else {
        hold(weakDeref(s.ref), run, s.id);
      }
      text = stringSlice(text, lineEnd + 1);
    }
    return readResult(run, text);
  };
  const askBatch = (verb, json) =>
    s.c.signal === undefined ? askHost(run, verb, json, readBatch) : askWatched(run, verb, { __proto__: null, json, signal: s.c.signal, token: s.c.token }, readBatch);
  const ask = () => {
    s.busy = true;
    let p;
    try {
      active(run);
      if (!s.begun) {
        s.begun = true;
        s.c = begin(t, m, args);
        if (s.c.signal !== undefined && made.abort.isAborted(s.c.signal)) {
          throw made.abort.reasonOf(s.c.signal);
        }
        p = askBatch('service', s.c.json);
      } else {
        p = askBatch('pull', '{"h":' + s.id + '}');
      }
    } catch (e) {
      return broke(e);
    }
    subscribe(p, arrived, broke);
  };
  // A signal that fired between two steps breaks the iteration off: what was read
  // ahead is not given any more.
  const brokenOff = () => {
    const finished = s.over && s.at >= s.values.length;
    if (finished || s.busy || s.c === null || s.c.signal === undefined || !made.abort.isAborted(s.c.signal)) {
      return;
    }
    stop();
    s.failure = { __proto__: null, e: made.abort.reasonOf(s.c.signal) };
  };
  const pump = () => {
    brokenOff();
    while (s.wanted.length > 0 && s.at < s.values.length) {
      const value = s.values[s.at];
      s.at++;
      take().resolve(result(value, false));
    }
    if (!s.over) {
      if (s.wanted.length > 0 && !s.busy) {
        ask();
      }
      return;
    }
    while (s.wanted.length > 0) {
      const w = take();
      if (s.failure !== null) {
        const e = s.failure.e;
        s.failure = null;
        w.reject(e);
      } else {
        w.resolve(result(undefined, true));
      }
    }
  };
  const stop = () => {
    const id = s.id;
    if (id === 0 && s.busy && !s.over) { // its number is not known yet
      cancelCall(run, s.c.token);
    }
    end(null);
    s.values = list();
    s.at = 0;
    if (id === 0 || run.ended) {
      return resolved;
    }
    const p = askHost(run, 'stop', '{"h":' + id + '}', nothing);
    subscribe(p, nothing, nothing);
    return p;
  };
  // Nothing here knows the iterator, so that it is given back as soon as it is lost.
  const iterator = {
    next: () =>
      new NativePromise((resolve, reject) => {
        s.wanted[s.wanted.length] = { __proto__: null, resolve, reject };
        pump();
      }),
    return: (value) =>
      new NativePromise((resolve) => {
        const done = () => resolve(result(value, true));
        subscribe(stop(), done, done);
        pump();
      }),
    throw: (error) =>
      new NativePromise((_, reject) => {
        const done = () => reject(error);
        subscribe(stop(), done, done);
        pump();
      }),
  };
  hide(iterator, NativeSymbol.asyncIterator, itself);
  s.ref = new NativeWeakRef(iterator);
  return iterator;
};

const itself = function () {
  return this;
};

return { makeHostService, enterFunction };
