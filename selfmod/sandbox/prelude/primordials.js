// Everything of the language that the prelude uses, captured before any other
// code runs. Rules for all parts of the prelude, since a mount may replace any
// intrinsic and poison any prototype:
//   - no for-of, no spread, no array destructuring, no template with a
//     substitution (the engine compiles that to a call of concat), no regular
//     expression, no await: all of them use what can be patched;
//   - methods are called through the functions below or on safe containers;
//   - lists are grown by index only when made by list(), whose prototype is
//     null, so that no numeric setter on a prototype can see or stop it;
//   - a property that may be missing is read with own(), since a missing one is
//     looked for on Object.prototype.

const { apply, construct, ownKeys, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
const reflectGet = Reflect.get;
const reflectSet = Reflect.set;
const reflectHas = Reflect.has;
const reflectDefine = Reflect.defineProperty;
const uncurry = ((bind, call) => (fn) => apply(bind, call, [fn]))(Function.prototype.bind, Function.prototype.call);

const ObjectPrototype = Object.prototype;
const ArrayPrototype = Array.prototype;
const FunctionPrototype = Function.prototype;
const create = Object.create;
const freeze = Object.freeze;
const keysOf = Object.keys;
const hasOwn = Object.hasOwn;
const defineProperty = Object.defineProperty;
const isArray = Array.isArray;
const functionText = uncurry(FunctionPrototype.toString);
const isPrototypeOf = uncurry(ObjectPrototype.isPrototypeOf);

const NativeString = String;
const NativeNumber = Number;
const NativeBigInt = BigInt;
const NativeProxy = Proxy;
const NativeSymbol = Symbol;
const stringSlice = uncurry(String.prototype.slice);
const stringIndexOf = uncurry(String.prototype.indexOf);
const stringStartsWith = uncurry(String.prototype.startsWith);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const fromCharCode = String.fromCharCode;
const symbolText = uncurry(Symbol.prototype.toString);
const symbolFor = Symbol.for;
const symbolKeyFor = Symbol.keyFor;
const isFiniteNumber = Number.isFinite;
const min = Math.min;
const now = Date.now;
const parseJSON = JSON.parse;
const stringifyJSON = JSON.stringify;

const errors = { __proto__: null, Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError };
const NativeError = Error;
const NativeTypeError = TypeError;
const NativeRangeError = RangeError;
const ErrorPrototype = Error.prototype;
const isErrorObject = Error.isError || null;

const NativePromise = Promise;
const promiseThen = uncurry(Promise.prototype.then);
const NativeMap = Map;
const NativeSet = Set;
const NativeDate = Date;
const NativeRegExp = RegExp;
const NativeWeakRef = WeakRef;
const NativeRegistry = FinalizationRegistry;
const mapSize = uncurry(getOwnPropertyDescriptor(Map.prototype, 'size').get);

const NativeUint8Array = Uint8Array;
const NativeUint16Array = Uint16Array;
const NativeArrayBuffer = ArrayBuffer;
const NativeDataView = DataView;
const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedTag = uncurry(getOwnPropertyDescriptor(TypedArrayPrototype, NativeSymbol.toStringTag).get);
const fromBase64 = Uint8Array.fromBase64;

// What only parts call is captured as it is, and uncurried for them in core when
// the first part is read: a bound function costs a machine more than its target.
const partMethods = {
  __proto__: null,
  classOf: ObjectPrototype.toString,
  bigintText: BigInt.prototype.toString,
  registerWith: FinalizationRegistry.prototype.register,
  weakDeref: WeakRef.prototype.deref,
  dateValue: Date.prototype.getTime,
  dateISO: Date.prototype.toISOString,
  mapEach: Map.prototype.forEach,
  setEach: Set.prototype.forEach,
  mapSet: Map.prototype.set,
  setAdd: Set.prototype.add,
  setSize: getOwnPropertyDescriptor(Set.prototype, 'size').get,
  typedBuffer: getOwnPropertyDescriptor(TypedArrayPrototype, 'buffer').get,
  typedOffset: getOwnPropertyDescriptor(TypedArrayPrototype, 'byteOffset').get,
  typedBytes: getOwnPropertyDescriptor(TypedArrayPrototype, 'byteLength').get,
  typedLength: getOwnPropertyDescriptor(TypedArrayPrototype, 'length').get,
  typedSet: TypedArrayPrototype.set,
  bufferBytes: getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get,
  bufferTransfer: ArrayBuffer.prototype.transfer,
  viewBuffer: getOwnPropertyDescriptor(DataView.prototype, 'buffer').get,
  viewOffset: getOwnPropertyDescriptor(DataView.prototype, 'byteOffset').get,
  viewBytes: getOwnPropertyDescriptor(DataView.prototype, 'byteLength').get,
  toBase64: Uint8Array.prototype.toBase64,
  regexpSource: getOwnPropertyDescriptor(RegExp.prototype, 'source').get,
  regexpFlags: getOwnPropertyDescriptor(RegExp.prototype, 'flags').get,
};

const GeneratorFunctionPrototype = getPrototypeOf(function* () {});
const AsyncFunctionPrototype = getPrototypeOf(async function () {});
const AsyncGeneratorFunctionPrototype = getPrototypeOf(async function* () {});

// Containers whose methods nobody else can reach: the native ones, on a
// prototype of our own.
const safe = (prototype, names) => {
  const methods = create(null);
  for (let i = 0; i < names.length; i++) {
    methods[names[i]] = prototype[names[i]];
  }
  return freeze(methods);
};
const safeMap = safe(Map.prototype, ['get', 'set', 'has', 'delete', 'forEach']);
const safeSet = safe(Set.prototype, ['add', 'has', 'delete', 'forEach']);
const safeWeakMap = safe(WeakMap.prototype, ['get', 'set', 'has', 'delete']);
const NativeWeakMap = WeakMap;
const newMap = () => setProto(new NativeMap(), safeMap);
const newSet = () => setProto(new NativeSet(), safeSet);
const newWeakMap = () => setProto(new NativeWeakMap(), safeWeakMap);
const setProto = Object.setPrototypeOf;

// typedConstructors has the constructors of typed arrays by name.
const typedConstructors = create(null);
for (let names = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array', 'Float16Array', 'Float32Array', 'Float64Array'], i = 0; i < names.length; i++) {
  const ctor = globalThis[names[i]];
  if (typeof ctor === 'function') {
    typedConstructors[names[i]] = ctor;
  }
}

// list returns an array that can be grown by index whatever the prototypes hold.
// toArray gives it (or nothing) the prototype that other code expects.
const list = () => setProto([], null);
const toArray = (l) => setProto(l, ArrayPrototype);

// own reads a property that may be missing.
const own = (o, k) => (hasOwn(o, k) ? o[k] : undefined);
const isObject = (v) => (typeof v === 'object' && v !== null) || typeof v === 'function';

// hide defines a property as the language's own are: not enumerable.
const hide = (o, k, value) => defineProperty(o, k, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
// show defines an ordinary property, whatever setters the prototypes have.
const show = (o, k, value) => defineProperty(o, k, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

// quote gives the JSON text of a string.
const quote = nativeText;
const cut = (s, n) => (s.length <= n ? s : stringSlice(s, 0, n) + '…');

// hides says whether a UTF-16 unit shows nothing, or changes how others show.
const hides = (c) =>
  (c >= 0x7f && c <= 0xa0) || c === 0xad || c === 0x61c || c === 0x115f || c === 0x1160 || c === 0x180e || (c >= 0x200b && c <= 0x200f) ||
  (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c === 0x3164 || (c >= 0xfe00 && c <= 0xfe0f) || c === 0xfeff || c === 0xffa0 || (c >= 0xfff0 && c <= 0xfffb);
const HEX = '0123456789abcdef';

// quoteName quotes what somebody called something, for a message: cut, on one
// line, with escapes for what could forge or hide something.
const quoteName = (s, n) => {
  const text = quote(cut(s, n));
  let out = '';
  let tag = false; // the second unit of an invisible character
  for (let i = 0; i < text.length; i++) {
    const c = charCodeAt(text, i);
    const escape = tag || c === 0xdb40 || hides(c);
    tag = c === 0xdb40;
    out += escape ? '\\u' + HEX[c >> 12] + HEX[(c >> 8) & 15] + HEX[(c >> 4) & 15] + HEX[c & 15] : text[i];
  }
  return out;
};

const nothing = () => {};
const resolved = new NativePromise((resolve) => resolve());
