// From Go: the dispatcher. All arguments are text, except those of load and module.
//
//   load callId fn → Loaded          apply callId run bindings
//   open callId                      module callId namespace promise → Loaded
//   invoke callId kind fn args       settle id text
//   abort callId reason              bind run name binding|null
//   retire run                       peer caller request arguments
//   drop caller                      part name fn
//
// load, apply and invoke answer with a value text, or with "~": then done follows.

// calls: id → { id, run, now, text, abort }, while they are not finished: as long as
// text is "~". now says that the synchronous part runs; abort is null or what
// abortOf makes.
const calls = newMap();

// It has all that is read of it, so what its prototype has does not matter; nor
// does it for other short-lived records of ours.
const newCall = (id, run) => {
  const call = { id, run, now: true, text: '~', abort: null };
  calls.set(id, call);
  return call;
};

const abortOf = (call) => (call.abort ??= { signal: null, aborted: false, reason: undefined });

// finish answers a call, once: by the dispatcher's result while it runs, by done
// afterwards.
const finish = (call, text) => {
  if (call.text !== '~') {
    return;
  }
  calls.delete(call.id);
  call.text = text;
  if (!call.now) {
    call.text = '';
    host('done', call.id, text);
  }
};

const phase = (call, entry) => host('phase', call.id, entry);

// attempt calls fn and gives its value, awaited, to ok; what fn, the promise or
// ok throws goes to bad. bad must not throw.
const attempt = (fn, ok, bad) => {
  let v;
  let how;
  try {
    v = nativeValue(fn());
    if ((how = waitsFor(v)) === null) {
      return ok(v);
    }
  } catch (e) {
    return bad(e);
  }
  waitFor(
    v,
    how,
    (value) => {
      try {
        ok(value);
      } catch (e) {
        bad(e);
      }
    },
    bad,
  );
};

// once is attempt for a call that one function answers, without closures for what
// is there at once.
const once = (call, fn, write) => {
  let v;
  let how;
  try {
    v = nativeValue(fn());
    how = waitsFor(v);
    if (how === null) {
      return finish(call, '=' + write(v));
    }
  } catch (e) {
    return finish(call, failed(e));
  }
  waitFor(
    v,
    how,
    (value) => {
      try {
        finish(call, '=' + write(value));
      } catch (e) {
        finish(call, failed(e));
      }
    },
    (e) => finish(call, failed(e)),
  );
};

// enter runs fn(call) as the synchronous part of a call.
const enter = (id, run, fn) => {
  const call = newCall(id, run);
  const before = current;
  current = id;
  try {
    fn(call);
  } catch (e) {
    finish(call, failed(e));
  }
  current = before;
  call.now = false;
  return call.text;
};

const makeNext = (call) => {
  let called = false;
  return () => {
    if (called) {
      return new NativePromise((_, reject) => reject(new NativeError('next() was called twice: a listener of a waterfall calls next() at most once, and returns what it gave')));
    }
    called = true;
    return askAsync(call.run, 'next', '{"call":' + digits(call.id) + '}');
  };
};

const pass = (call) => once(call, makeNext(call), (v) => (v === undefined ? '' : jsonOf('the result of next()', v)));

// enterListener runs a listener of an event. One that was removed meanwhile lets
// the event pass.
const enterListener = (call, entry, a) => {
  const waterfall = own(a, 'next') === true;
  const given = own(a, 'args');
  if (entry === undefined || entry.gone) {
    return waterfall ? pass(call) : finish(call, '=');
  }
  if (entry.extra) {
    dropFunction(entry);
  }
  const args = isArray(given) ? given : [];
  if (waterfall) {
    show(args, args.length, makeNext(call));
  }
  once(call, () => apply(entry.fn, undefined, args), waterfall ? waterfallText : eventText);
};

const waterfallText = (v) => (v === undefined ? '' : jsonOf('the result of a waterfall listener', v));

// eventText: nobody may be interested. A listener of a plain event returns what its
// last expression gave.
const eventText = (v) => {
  if (v === undefined) {
    return '';
  }
  try {
    return losslessText(v, 'value');
  } catch {
    return '';
  }
};

const enterCallback = (call, entry) => {
  if (entry === undefined || entry.gone) {
    return finish(call, '=');
  }
  if (entry.extra) {
    dropFunction(entry);
  }
  once(call, () => apply(entry.fn, undefined, []), () => '');
};

const enterDisposer = (call, entry) => {
  if (entry === undefined) {
    return finish(call, '=');
  }
  dropFunction(entry);
  once(call, () => apply(entry.fn, undefined, []), () => '');
};

// invoke is enter, written out for what is entered most.
const invoke = (id, kind, fn, json) => {
  const entry = functions.get(+fn);
  const call = newCall(id, entry === undefined ? anyActiveRun() : entry.run);
  const before = current;
  current = id;
  try {
    if (kind === 'tool' && entry !== undefined && entry.kind === 'tool') {
      made.tool.enterTool(call, entry.extra, json);
    } else {
      invoked(call, entry, kind, json);
    }
  } catch (e) {
    finish(call, failed(e));
  }
  current = before;
  call.now = false;
  return call.text;
};

const invoked = (call, entry, kind, json) => {
  switch (kind) {
    case 'listener':
      return enterListener(call, entry, readArguments(json));
    case 'callback':
      return enterCallback(call, entry);
    case 'dispose':
      return enterDisposer(call, entry);
    case 'function':
      return parts('host').enterFunction(call, entry, readArguments(json));
  }
  if (entry === undefined || entry.kind !== 'tool') {
    throw codedError('the tool is no longer registered: its plugin removed it', 'TOOL_GONE');
  }
  return parts('tool').enterMember(call, kind, entry.extra, json);
};

const readArguments = (json) => {
  try {
    return parseJSON(json);
  } catch {
    throw new NativeRangeError('the arguments are nested deeper, or are larger, than this virtual machine can read');
  }
};

// anyActiveRun is the run on whose behalf a removed listener passes on.
const anyActiveRun = () => {
  let found = null;
  runs.forEach((run) => {
    found = run;
  });
  return found;
};

const abort = (id, reason) => {
  const call = calls.get(id);
  if (call === undefined) {
    return;
  }
  const a = abortOf(call);
  if (a.aborted) {
    return;
  }
  a.aborted = true;
  a.reason = abortError(reason === '' || reason === undefined ? 'This operation was aborted' : reason);
  if (a.signal !== null) {
    const before = current;
    current = id;
    parts('abort').fire(a.signal, a.reason);
    current = before;
  }
};

const retire = (id) => {
  const run = runs.get(id);
  if (run === undefined) {
    return;
  }
  run.ended = true;
  runs.delete(id);
  functions.forEach((entry, fn) => {
    if (entry.run === run) {
      entry.gone = true;
      functions.delete(fn);
    }
  });
  run.ending.forEach((end) => end(contextDisposed()));
  run.bindings = newMap();
  if (made.peer !== undefined) {
    made.peer.retirePeers(run);
  }
};

const bind = (id, name, json) => {
  const run = runs.get(id);
  if (run !== undefined) {
    setBinding(run, name, parseJSON(json));
  }
};

const applyPlugin = (id, runId, json) => {
  const run = newRun(runId);
  runs.set(runId, run);
  return enter(id, run, (call) => start(call, run, parseJSON(json)));
};

// core is what the parts use of all this; partMethods come to it.
const core = {
  __proto__: null,
  ArrayPrototype, CONTEXT_SHOWN, FunctionPrototype, LIMITS, MAX_MESSAGE, MAX_STACK, NativeArrayBuffer, NativeBigInt,
  NativeDataView, NativeDate, NativeError, NativeMap, NativeNumber, NativePromise, NativeProxy, NativeRangeError,
  NativeRegExp, NativeRegistry, NativeSet, NativeString, NativeSymbol, NativeTypeError, NativeUint16Array,
  NativeUint8Array, NativeWeakRef, ObjectPrototype, abort, abortError, abortOf, absentError, active, addFunction, answer,
  apply, askAsync, askSync, attempt, awaitId, charCodeAt, codedError, construct, create, current, cut,
  defineProperty, digits, dropFunction, endedError, enlist, errors, facades, failed, finish, freeze, fromBase64,
  fromCharCode, functionText, getOwnPropertyDescriptor, getPrototypeOf, handles, hasOwn, hide, host, injecting,
  isArray, isClass, isData, isError, isFiniteNumber, isNativePromise, isObject, isPlainJSON, isProbe, isRecord, jsonOf, keysOf, kindOf,
  labels, later, list, losslessText, lossy, lossyErrors, made, mapSize, messageOf, min, name60, nativeData, nativeText, nativeValue, newHandle, newMap,
  newSet, newWeakMap, notPlugin, nothing, now, once, own, ownKeys, parseJSON, parts, phase, plugin, promiseThen,
  quote, quoteName, readArguments, readInject, readOnly, reflectGet, reflectHas, reflectSet, reportLate, resolved, send, setProto, setPrototypeOf,
  settled, show, stringIndexOf, stringSlice, stringStartsWith, stringify, stringifyJSON, subscribe, symbolFor, symbolKeyFor,
  symbolText, textOf, timerNames, timerVerb, told, toolsOf, typeError, typedConstructors, typedTag, unchangeable, uncurry, waitFor, waiting, waitsFor,
  currentCall: () => current,
  isFile: () => file,
};

nativeHold((op, a, b, c, d) => {
  switch (op) {
    case 'invoke':
      return invoke('' + a, b, c, d);
    case 'settle':
      return settle('' + a, b);
    case 'peer':
      return (made.peer || parts('peer')).servePeer(a, b, c);
    case 'load':
      return enter('' + a, null, (call) => load(call, b));
    case 'open':
      return open('' + a);
    case 'module':
      return loadModule('' + a, b, c);
    case 'apply':
      return applyPlugin('' + a, '' + b, c);
    case 'abort':
      return abort('' + a, b);
    case 'bind':
      return bind('' + a, b, c);
    case 'retire':
      return retire('' + a);
    case 'drop':
      return made.peer === undefined ? undefined : made.peer.dropCaller(a);
    case 'part':
      return addPart(a, b);
  }
  throw new NativeError('unknown operation ' + quote('' + op));
});
