// To Go: everything that this machine asks of the worker or the host.
//
//   done callId text · phase callId entry · sync callId run verb json ·
//   async callId run verb json → id · send callId run verb json ·
//   check json · peer mount request arguments · peerdone promiseId text · console level text
//
// A value text is '=' and JSON (nothing: undefined), or '!' and a failure.
// Numbers that Go gave (call ids, effects) go back as the digits they came as.

// current is the id of the call whose synchronous part runs, '' when none does.
let current = '';

const host = nativeHost;

// answer reads a value text: the JSON text, '' for undefined, or throws.
const answer = (text) => {
  if (text === undefined || text === '=') {
    return '';
  }
  if (text[0] === '!') {
    throw rebuild(stringSlice(text, 1));
  }
  return stringSlice(text, 1);
};

// parsed is answer with the JSON read.
const parsed = (text) => {
  const json = answer(text);
  return json === '' ? undefined : parseJSON(json);
};

const askSync = (run, verb, json) => parsed(host('sync', current, '' + run.id, verb, json));
const send = (callId, run, verb, json) => host('send', callId, '' + run.id, verb, json);

// What waits for a settle: id → { resolve, reject, read }, read making a value
// of the JSON text.
const waiting = newMap();

const awaitId = (id, read) =>
  new NativePromise((resolve, reject) => {
    waiting.set('' + id, { resolve, reject, read });
  });

const readJSON = (json) => (json === '' ? undefined : parseJSON(json));

const askAsync = (run, verb, json, read) => awaitId(host('async', current, '' + run.id, verb, json), read || readJSON);

// settle is Go's answer to async, or to a promise of a peer.
const settle = (id, text) => {
  const w = waiting.get(id);
  if (w === undefined) {
    return;
  }
  waiting.delete(id);
  let value;
  try {
    value = w.read(answer(text));
  } catch (e) {
    w.reject(e);
    return;
  }
  w.resolve(value);
};

// subscribe calls ok or bad when a native promise settles, without trusting
// what a mount may have put on it or on Promise. It throws when p is no native
// promise.
const subscribe = (p, ok, bad) => {
  let ordinary = false;
  try {
    ordinary = p.constructor === NativePromise && NativePromise[species] === NativePromise;
  } catch {
    // A getter in the place of one of them.
  }
  if (ordinary) {
    promiseThen(p, ok, bad);
    return;
  }
  if (!hasOwn(p, 'constructor') && reflectDefine(p, 'constructor', ownConstructor)) {
    // A constructor of its own makes then ignore the prototype's.
    try {
      promiseThen(p, ok, bad);
    } finally {
      delete p.constructor;
    }
    return;
  }
  promiseThen(p, ok, bad);
};
const { species } = NativeSymbol;
const ownConstructor = { __proto__: null, value: undefined, configurable: true };

// isNativePromise is a brand check that runs no code of a mount: a promise's
// then with handlers that do nothing would count as handling, so the class tag
// and the prototype chain are looked at first and subscribe decides.
const isNativePromise = (v) => {
  try {
    const p = getPrototypeOf(v);
    return p === NativePromise_prototype || (p !== ObjectPrototype && p !== ArrayPrototype && isPrototypeOf(NativePromise_prototype, v));
  } catch {
    return false;
  }
};
const NativePromise_prototype = NativePromise.prototype;

// waitsFor says how v is to be waited for: null for not at all, NativePromise_prototype
// for what is a promise by its prototype, or its function then. It throws what a
// getter of then throws.
const waitsFor = (v) => {
  if (!isObject(v)) {
    return null;
  }
  if (isNativePromise(v)) {
    return NativePromise_prototype;
  }
  const then = v.then;
  return typeof then === 'function' ? then : null;
};

// waitFor calls ok(value) or bad(error) once v, for which waitsFor gave how, has a
// value. It returns false when that was at once. ok and bad must not throw.
const waitFor = (v, how, ok, bad) => {
  let then = how;
  if (how === NativePromise_prototype) {
    try {
      subscribe(v, ok, bad);
      return true;
    } catch {
      // Only its prototype is a promise's: an ordinary value or thenable.
    }
    try {
      then = v.then;
    } catch (e) {
      bad(e);
      return false;
    }
  }
  if (typeof then !== 'function') {
    ok(v);
    return false;
  }
  const p = new NativePromise((resolve, reject) => {
    subscribe(resolved, () => {
      try {
        apply(then, v, [resolve, reject]);
      } catch (e) {
        reject(e);
      }
    });
  });
  subscribe(p, ok, bad);
  return true;
};

// settled calls ok(value) or bad(error) once v, which may be a promise, another
// thenable or a plain value, has a value. It returns false when that was at
// once, true when it will be later. ok and bad must not throw.
const settled = (v, ok, bad) => {
  let how;
  try {
    how = waitsFor(v);
  } catch (e) {
    bad(e);
    return false;
  }
  return waitFor(v, how, ok, bad);
};

// promised makes a promise of any value without looking at a patched then.
const promised = (v) => new NativePromise((resolve, reject) => void settled(v, resolve, reject));
