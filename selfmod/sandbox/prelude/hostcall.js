// A part, with hostobject.js: calls of host services: what goes to a service and
// what comes back; see package bridge for the two forms of values.

const {
  CONTEXT_SHOWN, NativeArrayBuffer, NativeDataView, NativeDate, NativeError, NativeMap, NativePromise, NativeProxy,
  NativeRegistry, NativeSet, NativeSymbol, NativeUint8Array, NativeWeakRef, active, addFunction, answer, apply,
  charCodeAt, codedError, create, currentCall, dateISO, dateValue, dropFunction, facades, fromBase64, getPrototypeOf,
  hasOwn, hide, host, isArray, isError, isFiniteNumber, isNativePromise, isObject, isProbe, isRecord, keysOf, labels,
  list, made, name60, nativeText, newMap, newWeakMap, nothing, once, own, parseJSON, quote, readOnly, registerWith, resolved, show,
  stringIndexOf, stringSlice, subscribe, textOf, toBase64, typeError, typedBuffer, typedBytes,
  typedOffset, typedTag, unchangeable, viewBuffer, viewBytes, viewOffset, waiting, weakDeref, told,
} = core;

const MapProto = NativeMap.prototype;
const SetProto = NativeSet.prototype;
const DateProto = NativeDate.prototype;
const ArrayBufferProto = NativeArrayBuffer.prototype;
const DataViewProto = NativeDataView.prototype;

const MAX_NESTED = 2000;

// dollars says whether a key consists of "$" signs: data's has one more on its way.
const dollars = (key) => {
  for (let i = 0; i < key.length; i++) {
    if (key[i] !== '$') {
      return false;
    }
  }
  return key !== '';
};

// A conversation of one call: { run, label, sig, given, at }: at is where in the
// arguments the writer is, given the functions that were written.
const unfit = (c, what) => {
  let path = '';
  for (let i = 0; i < c.at.length; i++) {
    const k = c.at[i];
    path += i === 0 ? k : typeof k === 'number' ? '[' + k + ']' : '.' + k;
  }
  return typeError(c.label + ': ' + path + ' is ' + what + '.' + (c.sig === '' ? '' : ' Signature: ' + c.sig));
};

const bytesText = (view) => '{"$":"b","v":"' + toBase64(view) + '"}';

// bytesOf is a view of what holds bytes; undefined: v does not.
const bytesOf = (v, proto) => {
  if (typedTag(v) !== undefined) {
    return new NativeUint8Array(typedBuffer(v), typedOffset(v), typedBytes(v));
  }
  if (proto === ArrayBufferProto) {
    return new NativeUint8Array(v);
  }
  return proto === DataViewProto ? new NativeUint8Array(viewBuffer(v), viewOffset(v), viewBytes(v)) : undefined;
};

// Functions that were given to services, while their run lasts and the host may
// call them: function → entry; entry.extra counts how often it was given.
const given = newWeakMap();
const functions = newMap(); // number → entry

const give = (c, fn) => {
  let entry = given.get(fn);
  if (entry === undefined || entry.gone || entry.run !== c.run) {
    entry = addFunction(c.run, 'given', fn, 0);
    given.set(fn, entry);
    functions.set(entry.id, entry);
  }
  entry.extra++;
  return '{"$":"f","h":' + entry.id + '}';
};

// release takes back functions, once for each number.
const release = (text) => {
  const ids = parseJSON('[' + text + ']');
  for (let i = 0; i < ids.length; i++) {
    const entry = functions.get(ids[i]);
    if (entry !== undefined && (--entry.extra <= 0 || entry.gone)) {
      functions.delete(ids[i]);
      given.delete(entry.fn);
      if (!entry.gone) {
        dropFunction(entry);
      }
    }
  }
};

const forgetFunctions = (run) => {
  functions.forEach((entry, id) => {
    if (entry.run === run) {
      functions.delete(id);
    }
  });
};

// write is the JSON text of a value that goes to the host.
const write = (c, v, skip) => {
  switch (typeof v) {
    case 'string':
      return quote(v);
    case 'boolean':
      return v ? 'true' : 'false';
    case 'number':
      if (!isFiniteNumber(v)) {
        throw unfit(c, v + ', which is no number for a service');
      }
      return v === 0 ? '0' : '' + v;
    case 'undefined':
      return '{"$":"u"}';
    case 'bigint':
      throw unfit(c, 'a BigInt; pass it as a string or a number');
    case 'symbol':
      throw unfit(c, 'a symbol, and services take data only');
    case 'function':
      return give(c, v);
  }
  if (v === null) {
    return 'null';
  }
  if (facades.has(v)) {
    throw typeError(CONTEXT_SHOWN('host'));
  }
  if (labels.has(v)) {
    throw unfit(c, labels.get(v) + ', which cannot be passed on; pass its data');
  }
  if (c.at.length > MAX_NESTED) {
    throw unfit({ __proto__: null, label: c.label, sig: c.sig, at: [c.at[0]] }, 'nested deeper than ' + MAX_NESTED + ', or holds itself');
  }
  const proto = getPrototypeOf(v);
  const view = bytesOf(v, proto);
  if (view !== undefined) {
    return bytesText(view);
  }
  if (isArray(v)) {
    return writeArray(c, v);
  }
  if (proto === DateProto) {
    if (!isFiniteNumber(dateValue(v))) {
      throw unfit(c, 'an invalid Date');
    }
    return quote(dateISO(v));
  }
  if (proto === MapProto || proto === SetProto) {
    throw unfit(c, proto === MapProto ? 'a Map; pass Object.fromEntries(map)' : 'a Set; pass [...set]');
  }
  if (isNativePromise(v)) {
    throw unfit(c, 'a promise; await it first');
  }
  if (isError(v)) {
    if (stringIndexOf(c.label, 'ctx.log.') === 0) { // errors are what logs are for
      return quote(textOf(v, 'name') + ': ' + textOf(v, 'message'));
    }
    throw unfit(c, 'an Error; pass its message');
  }
  return writeRecord(c, v, skip);
};

const writeArray = (c, v) => {
  const depth = c.at.length;
  let text = '[';
  for (let i = 0, n = v.length; i < n; i++) {
    c.at[depth] = i;
    text += (i === 0 ? '' : ',') + write(c, v[i]);
  }
  c.at.length = depth;
  return text + ']';
};

// writeRecord leaves out what is undefined, and the member skip.
const writeRecord = (c, v, skip) => {
  const depth = c.at.length;
  const keys = keysOf(v);
  let text = '';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    const member = v[key];
    if (member === undefined || key === skip) {
      continue;
    }
    c.at[depth] = key;
    text += (text === '' ? '' : ',') + quote(dollars(key) ? '$' + key : key) + ':' + write(c, member);
  }
  c.at.length = depth;
  return '{' + text + '}';
};

const isSignal = (v) => made.abort !== undefined && made.abort.isSignal(v);

// quickArguments is writeArguments for what nearly all calls have: strings, numbers
// and plain data; undefined: it is more than that.
const quickArguments = (args) => {
  const n = args.length;
  let text = '[';
  for (let i = 0; i < n; i++) {
    const v = args[i];
    let one;
    switch (typeof v) {
      case 'string':
        one = quote(v);
        break;
      case 'number':
        if (!isFiniteNumber(v)) {
          return undefined;
        }
        one = v === 0 ? '0' : '' + v;
        break;
      case 'object':
        if (i === n - 1 && v !== null && made.abort !== undefined && (made.abort.isSignal(v) || hasOwn(v, 'signal'))) {
          return undefined;
        }
        one = nativeText(v, true);
        if (one === undefined || stringIndexOf(one, '"$') !== -1) {
          return undefined;
        }
        break;
      case 'boolean':
        one = v ? 'true' : 'false';
        break;
      default:
        return undefined;
    }
    text += i === 0 ? one : ',' + one;
  }
  return text + ']';
};

// takeSignal finds the signal of a call: the last argument, or its member
// signal; it is not an argument then.
const takeSignal = (c, args) => {
  const n = args.length;
  if (n === 0 || made.abort === undefined) {
    return n;
  }
  const last = args[n - 1];
  if (isSignal(last)) {
    c.signal = last;
    return n - 1;
  }
  if (isRecord(last) && hasOwn(last, 'signal') && isSignal(last.signal)) {
    c.signal = last.signal;
    c.skip = 'signal';
    return keysOf(last).length === 1 ? n - 1 : n;
  }
  return n;
};

// writeArguments is the JSON text of the arguments of a call.
const writeArguments = (c, args, n) => {
  while (n > 0 && args[n - 1] === undefined) {
    n--;
  }
  let text = '[';
  for (let i = 0; i < n; i++) {
    const v = args[i];
    if (typeof v === 'string') {
      text += (i === 0 ? '' : ',') + quote(v);
      continue;
    }
    c.at = list();
    c.at[0] = 'argument ' + (i + 1);
    text += (i === 0 ? '' : ',') + write(c, v, i === args.length - 1 ? c.skip : undefined);
  }
  return text + ']';
};

// revive makes values of what stands for them in JSON.
const revive = (v, run) => {
  if (typeof v !== 'object' || v === null) {
    return v;
  }
  if (isArray(v)) {
    for (let i = 0; i < v.length; i++) {
      const item = v[i];
      if (typeof item === 'object' && item !== null) {
        v[i] = revive(item, run);
      }
    }
    return v;
  }
  const kind = own(v, '$');
  if (typeof kind === 'string') {
    switch (kind) {
      case 'b':
        return fromBase64(v.v);
      case 'h':
        return makeObject(run, v.h, v.t);
      case 'd':
        return makeDispose(run, v.h);
    }
    return undefined;
  }
  const keys = keysOf(v);
  let renamed = false;
  for (let i = 0; i < keys.length; i++) {
    const item = v[keys[i]];
    if (typeof item === 'object' && item !== null) {
      show(v, keys[i], revive(item, run));
    }
    renamed = renamed || dollars(keys[i]);
  }
  if (!renamed) {
    return v;
  }
  const copy = {};
  for (let i = 0; i < keys.length; i++) {
    show(copy, dollars(keys[i]) ? stringSlice(keys[i], 1) : keys[i], v[keys[i]]);
  }
  return copy;
};

// readResult makes a value of a result.
const readResult = (run, text) => {
  if (text === '') {
    return undefined;
  }
  switch (text[0]) {
    case '~':
      return stringSlice(text, 1);
    case '^':
      return fromBase64(stringSlice(text, 1));
    case '*':
      return revive(parseJSON(stringSlice(text, 1)), run);
    case '+': {
      const end = stringIndexOf(text, '\n');
      release(stringSlice(text, 1, end));
      return readResult(run, stringSlice(text, end + 1));
    }
  }
  return parseJSON(text);
};

let lastCall = 0;

// askHost sends a request that is answered later. The error of a refusal carries
// the position of the call.
const askHost = (run, verb, json, read) => {
  const at = new NativeError();
  return new NativePromise((resolve, reject) => {
    waiting.set(host('async', currentCall(), run.id, verb, json), {
      __proto__: null,
      resolve,
      reject(e) {
        if (isError(e)) {
          hide(e, 'stack', textOf(at, 'stack'));
        }
        reject(e);
      },
      read,
    });
  });
};

// askWatched is askHost for a call that its signal cancels: then the reason of the
// signal is its error.
const askWatched = (run, verb, c, read) => {
  const { signal, token } = c;
  return new NativePromise((resolve, reject) => {
    const watcher = () => cancelCall(run, token);
    made.abort.watch(signal, watcher);
    subscribe(
      askHost(run, verb, c.json, read),
      (v) => {
        made.abort.unwatch(signal, watcher);
        resolve(v);
      },
      (e) => {
        made.abort.unwatch(signal, watcher);
        reject(made.abort.isAborted(signal) && textOf(e, 'code') === 'ABORT_ERR' ? made.abort.reasonOf(signal) : e);
      },
    );
  });
};

const cancelCall = (run, token) => {
  if (!run.ended) {
    host('send', currentCall(), '' + run.id, 'cancel', '{"t":' + token + '}');
  }
};

const rejected = (e) => new NativePromise((_, reject) => reject(e));

// begin writes the request of a call of member m of t: { run, head, label }.
const begin = (t, m, args) => {
  active(t.run);
  const c = { __proto__: null, run: t.run, label: t.label + '.' + m.name, sig: m.sig, at: null, signal: undefined, skip: undefined, token: 0 };
  const n = takeSignal(c, args);
  c.json = t.head + m.head + writeArguments(c, args, n);
  if (c.signal !== undefined || m.kind === 'iterator') {
    c.token = ++lastCall;
    c.json += ',"t":' + c.token;
  }
  c.json += '}';
  return c;
};

const callSync = (t, m, args) => {
  active(t.run);
  const quick = quickArguments(args);
  const json = quick === undefined ? begin(t, m, args).json : t.head + m.head + quick + '}';
  return readResult(t.run, answer(host('sync', currentCall(), t.run.id, 'service', json)));
};

const callAsync = (t, m, args) => {
  const quick = t.run.ended ? undefined : quickArguments(args);
  if (quick !== undefined) {
    return askHost(t.run, 'service', t.head + m.head + quick + '}', t.read);
  }
  let c;
  try {
    c = begin(t, m, args);
  } catch (e) {
    return rejected(e);
  }
  if (c.signal === undefined) {
    return askHost(t.run, 'service', c.json, t.read);
  }
  if (made.abort.isAborted(c.signal)) {
    return rejected(made.abort.reasonOf(c.signal));
  }
  return askWatched(t.run, 'service', c, t.read);
};

// enterFunction runs a function that was given to a service, or that of a provided value.
const enterFunction = (call, entry, a) => {
  if (entry === undefined || entry.gone || (entry.kind !== 'given' && entry.kind !== 'service')) {
    throw codedError(told('the function was given to a service by a run of this temporary Plugin that has ended'), 'CONTEXT_ENDED');
  }
  const run = entry.run;
  const args = own(a, 's') === true ? revive(own(a, 'args'), run) : own(a, 'args');
  once(
    call,
    () => apply(entry.fn, undefined, args),
    (v) => {
      if (v === undefined) {
        return '';
      }
      const at = list();
      at[0] = 'the result';
      return write({ __proto__: null, run, label: 'a function that was given to a service', sig: '', at }, v);
    },
  );
};
