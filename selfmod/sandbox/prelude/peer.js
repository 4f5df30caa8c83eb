// A part, with codec.js and serve.js: objects shared between machines of one worker. The side that has an object
// exports it under a handle; the other side imports the handle as a live proxy
// or a stub. A handle says what it is: handle % 4 is 0 for an object, 1 for a
// function, 2 for an array.
//
// A request is {"run", "h", "op", "k"?, "f"?} and, apart, the list of arguments, or
// the only one if it is a string, number or boolean: so the first text is the same
// each time, and read once. op is get, set, has, own, keys,
// call (member k with the object as receiver), apply (the function itself), new (either);
// k is "." and a name, or "@" and a well-known symbol's name. "f" lists handles of
// the receiver that the sender has lost: [[handle, receipts], …]; an answer that
// has some is {"$":"+","f":[…],"v":answer}. So what is no longer used is freed
// without a message of its own. An answer may be a promise: "~" and its id.

// exports: handle → { v, run, service, holders: caller → receipts, pinned, handle, … };
// link is of the last request: the next one is mostly of the same caller.
const exported = newMap();
const exportedIds = newMap();
let exportCount = 0;
let lastExport = 0;

const GONE = 'SERVICE_GONE';

const free = (e) => {
  if (exported.delete(e.handle)) {
    exportedIds.delete(e.v);
    exportCount--;
  }
};

// exportValue returns the entry of v, making it if need be. Entries end with
// their run, or when nobody holds them.
const exportValue = (v, run, service) => {
  const known = exportedIds.get(v);
  if (known !== undefined) {
    return known;
  }
  if (exportCount >= LIMITS.handles) {
    throw new NativeRangeError('too many objects and functions are shared with other plugins at once (the limit is ' + LIMITS.handles + '): share fewer, or the same ones again');
  }
  const shape = typeof v === 'function' ? 1 : isArray(v) ? 2 : 0;
  const e = { __proto__: null, v, run, service, holders: newMap(), held: 0, pinned: 0, handle: ++lastExport * 4 + shape, link: null };
  exported.set(e.handle, e);
  exportedIds.set(v, e);
  exportCount++;
  return e;
};

// lose takes n receipts of a caller back; all of them when n is 0.
const lose = (e, caller, n) => {
  const has = e.holders.get(caller);
  if (has === undefined) {
    return false;
  }
  if (n === 0 || has <= n) {
    e.holders.delete(caller);
    e.held--;
  } else {
    e.holders.set(caller, has - n);
  }
  if (e.held === 0 && e.pinned === 0) {
    free(e);
  }
  return true;
};

// anyRun is the holder of what went out in a request: its receiver's run is unknown.
const anyRun = (mount) => mount + ':?';

const lost = (caller, mount, frees) => {
  for (let i = 0; i < frees.length; i++) {
    const e = exported.get(frees[i][0]);
    if (e !== undefined) {
      lose(e, caller, frees[i][1]) || lose(e, anyRun(mount), frees[i][1]);
    }
  }
};

const mountOf = (caller) => stringSlice(caller, 0, stringIndexOf(caller, ':'));

const dropCaller = (caller) => {
  const mount = mountOf(caller);
  exported.forEach((e) => {
    lose(e, caller, 0);
    lose(e, anyRun(mount), 0);
  });
};

// imports: run:mount:handle → { ref, … }; weak, so that what nobody uses is lost.
const imports = newMap();
const importedRecords = newWeakMap(); // proxy → its record

const registry = new NativeRegistry((rec) => {
  if (imports.get(rec.key) === rec) {
    imports.delete(rec.key);
  }
  if (!rec.run.ended) {
    rec.run.frees ??= newMap();
    let l = rec.run.frees.get(rec.mount);
    if (l === undefined) {
      l = list();
      rec.run.frees.set(rec.mount, l);
      freesWaiting++;
    }
    l[l.length] = '[' + rec.handle + ',' + rec.receipts + ']';
  }
});

// freesWaiting is how many lists of them there are.
let freesWaiting = 0;

// takeFrees returns the JSON list of what this run has lost of a mount, or ''.
const takeFrees = (run, mount) => {
  if (freesWaiting === 0 || run.frees === null) {
    return '';
  }
  const l = run.frees.get(mount);
  if (l === undefined) {
    return '';
  }
  run.frees.delete(mount);
  freesWaiting--;
  let text = '';
  for (let i = 0; i < l.length; i++) {
    text += (i === 0 ? '' : ',') + l[i];
  }
  return '[' + text + ']';
};

// A link is one direction of one conversation: { mount, caller, run, service }.
// caller is who holds what goes out; run is ours.
const peerLink = freeze({
  __proto__: null,
  live: true,
  own: (v) => importedRecords.has(v) || facades.has(v),
  out(v) {
    if (facades.has(v)) {
      throw typeError(CONTEXT_SHOWN(this.service));
    }
    const rec = importedRecords.get(v);
    if (rec !== undefined && rec.mount === this.mount && !rec.run.ended) {
      return ['y', rec.handle];
    }
    const e = exportValue(v, this.run, this.service);
    const has = e.holders.get(this.caller);
    e.holders.set(this.caller, has === undefined ? 1 : has + 1);
    e.held += has === undefined ? 1 : 0;
    return [typeof v === 'function' ? 'f' : isArray(v) ? 'a' : 'o', e.handle];
  },
  in(tag, handle) {
    if (tag === 'y') {
      const e = exported.get(handle);
      if (e === undefined) {
        throw codedError('an object that came back is no longer shared', GONE);
      }
      return e.v;
    }
    return importHandle(this.run, this.mount, handle, this.service, true);
  },
});
const newLink = (mount, caller, run, service) => ({ __proto__: peerLink, mount, caller, run, service });

// importHandle returns the proxy of another machine's handle, the same one as
// long as it lives. counted says that the handle came with a receipt. What is
// strongly held by the registry is the record; it must not reach the proxy, so
// the stubs of members, which keep the proxy alive, hang on the proxy's handler.
const importHandle = (run, mount, handle, service, counted) => {
  const key = run.id + ':' + mount + ':' + handle;
  let rec = imports.get(key);
  let proxy = rec === undefined ? undefined : weakDeref(rec.ref);
  if (proxy === undefined) {
    rec = { __proto__: null, key, run, mount, to: '' + mount, handle, service, receipts: 0, ref: null, link: newLink(mount, anyRun(mount), run, service) };
    const shape = handle % 4;
    const h = { __proto__: shape === 1 ? functionHandler : objectHandler, rec, stubs: null, proxy: null };
    proxy = new NativeProxy(shape === 1 ? function () {} : shape === 2 ? [] : {}, h);
    rec.ref = new NativeWeakRef(proxy);
    imports.set(key, rec);
    importedRecords.set(proxy, rec);
    labels.set(proxy, (shape === 1 ? 'function' : 'object') + ' of ' + (service === '' ? 'another plugin' : 'service ' + quote(service)));
    registerWith(registry, proxy, rec);
  }
  rec.receipts += counted ? 1 : 0;
  return proxy;
};

const goneError = (rec) =>
  codedError(
    rec.service === ''
      ? 'this object is gone: the mount that it belongs to was unmounted or restarted'
      : 'service "' + rec.service + '" is gone: the mount that provided it was unmounted or restarted',
    GONE,
  );

// readAnswer makes a value of an answer's JSON text.
const readAnswer = (h, key, json) => {
  if (json === '') {
    return undefined;
  }
  const v = parseJSON(json);
  return typeof v !== 'object' || v === null ? v : readObject(h, key, v);
};

const readObject = (h, key, given) => {
  const rec = h.rec;
  let v = given;
  if (own(v, '$') === '+') {
    lost(anyRun(rec.mount), rec.mount, v.f);
    v = own(v, 'v');
  }
  if (typeof v === 'object' && v !== null && own(v, '$') === 'm') {
    return memberStub(h, key);
  }
  return decode(v, rec.link);
};

const peerFailure = (rec, e) => {
  const code = isObject(e) ? textOf(e, 'code') : '';
  return code === GONE || code === 'NO_MOUNT' ? goneError(rec) : e;
};

// ask sends one request about the handler's object and returns its value, or a promise.
const ask = (h, op, key, args) => {
  const rec = h.rec;
  if (rec.run.ended) {
    throw endedError(rec.run);
  }
  return request(h, key, headOf(rec, op, key), args === undefined ? '' : writeArgs(rec, args));
};

// headOf is the text of a request but for its arguments.
const headOf = (rec, op, key) => {
  const text = '{"run":' + rec.run.id + ',"h":' + rec.handle + ',"op":"' + op + '"';
  return key === undefined ? text + '}' : text + ',"k":' + (typeof key === 'symbol' ? '"@' + wellKnownNames.get(key) + '"' : quote('.' + key)) + '}';
};

const writeArgs = (rec, args) => {
  const n = args.length;
  if (n === 0) {
    return '[]';
  }
  if (n === 1) {
    switch (typeof args[0]) {
      case 'string':
        return quote(args[0]);
      case 'number':
      case 'boolean':
        return encode(args[0], rec.link);
    }
  }
  const plain = nativeText(args, true);
  if (plain !== undefined && !marked(args)) {
    return plain;
  }
  let text = '[' + encode(args[0], rec.link);
  for (let i = 1; i < n; i++) {
    text += ',' + encode(args[i], rec.link);
  }
  return text + ']';
};

// marked says whether an element of plain data looks like what encode writes for
// other things.
const marked = (list) => {
  for (let i = 0, n = list.length; i < n; i++) {
    const v = list[i];
    if (typeof v === 'object' && v !== null && hasOwn(v, '$')) {
      return true;
    }
  }
  return false;
};

const request = (h, key, head, args) => {
  const rec = h.rec;
  let text = head;
  if (freesWaiting !== 0) {
    const frees = takeFrees(rec.run, rec.mount);
    text = frees === '' ? head : stringSlice(head, 0, head.length - 1) + ',"f":' + frees + '}';
  }
  let reply;
  try {
    reply = host('peer', rec.to, text, args);
    const tag = reply === undefined ? '' : reply[0];
    if (tag === '=') {
      if (reply.length === 1) {
        return undefined;
      }
      const v = parseJSON(stringSlice(reply, 1));
      return typeof v !== 'object' || v === null ? v : readObject(h, key, v);
    }
    if (tag !== '~') {
      return readAnswer(h, key, answer(reply));
    }
  } catch (e) {
    throw peerFailure(rec, e);
  }
  return awaitId(stringSlice(reply, 1), (json) => readAnswer(h, key, json));
};

// memberStub is a method of a peer's object; calling it is one request.
const memberStub = (h, key) => {
  if (h.stubs === null) {
    h.stubs = newMap();
    h.proxy = weakDeref(h.rec.ref);
  }
  let stub = h.stubs.get(key);
  if (stub === undefined) {
    const rec = h.rec;
    const run = rec.run;
    let head = ''; // of a call; made by the first
    stub = function (...args) {
      if (new.target !== undefined || run.ended) {
        return ask(h, new.target === undefined ? 'call' : 'new', key, args);
      }
      if (head === '') {
        head = headOf(rec, 'call', key);
      }
      return request(h, key, head, writeArgs(rec, args));
    };
    hide(stub, 'name', typeof key === 'symbol' ? symbolText(key) : key);
    h.stubs.set(key, stub);
  }
  return stub;
};

const member = (h, key) => {
  if (typeof key === 'symbol' && !wellKnownNames.has(key)) {
    return undefined;
  }
  const stub = h.stubs === null ? undefined : h.stubs.get(key);
  return stub === undefined ? ask(h, 'get', key) : stub;
};

const refuseChange = () => {
  throw typeError('an object of another plugin can be read, called and assigned to, not redefined');
};

const objectHandler = freeze({
  __proto__: null,
  get(target, key) {
    const stubs = this.stubs;
    if (stubs !== null) { // none of them has a name of those below
      const stub = stubs.get(key);
      if (stub !== undefined) {
        return stub;
      }
    }
    if (key === '__proto__') {
      return getPrototypeOf(target);
    }
    if (key === 'constructor' || (key === 'length' && isArray(target) && this.rec.run.ended)) {
      return target[key];
    }
    return member(this, key);
  },
  set(target, key, value) {
    if (typeof key === 'symbol' || key === '__proto__') {
      refuseChange();
    }
    if (this.stubs !== null) {
      this.stubs.delete(key);
    }
    ask(this, 'set', key, [value]);
    return true;
  },
  has(target, key) {
    return typeof key === 'symbol' ? wellKnownNames.has(key) && ask(this, 'has', key) === true : ask(this, 'has', key) === true;
  },
  ownKeys(target) {
    const keys = ask(this, 'keys');
    if (isArray(target)) {
      show(keys, keys.length, 'length');
    }
    return keys;
  },
  getOwnPropertyDescriptor(target, key) {
    if (typeof key === 'symbol') {
      return undefined;
    }
    if (key === 'length' && isArray(target)) {
      return { __proto__: null, value: ask(this, 'get', key), writable: true, enumerable: false, configurable: false };
    }
    if (ask(this, 'own', key) !== true) {
      return undefined;
    }
    return { __proto__: null, value: member(this, key), writable: true, enumerable: true, configurable: true };
  },
  deleteProperty: refuseChange,
  defineProperty: refuseChange,
  setPrototypeOf: refuseChange,
  preventExtensions: refuseChange,
});

const localFunctionKeys = newSet();
for (let names = ['name', 'length', 'prototype', 'call', 'apply', 'bind', 'toString', 'constructor', '__proto__', 'arguments', 'caller'], i = 0; i < names.length; i++) {
  localFunctionKeys.add(names[i]);
}

const functionHandler = freeze({
  __proto__: null,
  apply(target, self, args) {
    return ask(this, 'apply', undefined, args);
  },
  construct(target, args) {
    const v = ask(this, 'new', undefined, args);
    if (!isObject(v)) {
      throw typeError('the class of another plugin gave no object');
    }
    return v;
  },
  get(target, key) {
    return typeof key === 'symbol' || localFunctionKeys.has(key) ? target[key] : member(this, key);
  },
  set: objectHandler.set,
  deleteProperty: refuseChange,
  defineProperty: refuseChange,
  setPrototypeOf: refuseChange,
  preventExtensions: refuseChange,
});
