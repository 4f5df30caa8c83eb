// Lossless JSON: null, booleans, strings, finite numbers except -0, dense plain
// arrays, and plain objects with only own enumerable string keys; no cycles.
//
//   losslessText(value, root)  the JSON text; throws a Lossy that names the path
//   lossy(error)               the { path, kind, what, hint } of such an error
//
// The native writer takes nearly everything. What it leaves goes through a fast
// recursive walk; what that does not accept, through an exact iterative one
// (exact.js), which accepts depth up to LIMITS.depth, refuses accessors too, and
// finds out what is wrong and where.

const FAST_DEPTH = 400;

// isPlainJSON is the fast walk. It reads accessors instead of refusing them,
// and takes a Proxy for what it shows: so the text made right after is what
// counts, never the value again.
const isPlainJSON = (v, depth) => {
  switch (typeof v) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return isFiniteNumber(v) && (v !== 0 || 1 / v > 0);
    case 'object':
      break;
    default:
      return false;
  }
  if (v === null) {
    return true;
  }
  if (depth > FAST_DEPTH) {
    return false;
  }
  const proto = getPrototypeOf(v);
  if (proto === ArrayPrototype) {
    if (!isArray(v)) {
      return false;
    }
    const n = v.length;
    if (ownKeys(v).length !== n + 1) {
      return false;
    }
    for (let i = 0; i < n; i++) {
      const m = v[i];
      if (typeof m !== 'string' && !isPlainJSON(m, depth + 1)) {
        return false;
      }
    }
    return true;
  }
  if (proto !== ObjectPrototype && proto !== null) {
    return false;
  }
  // An array on one of these prototypes still has its length, which is no key.
  const keys = keysOf(v);
  const n = keys.length;
  if (ownKeys(v).length !== n) {
    return false;
  }
  for (let i = 0; i < n; i++) {
    const m = v[keys[i]];
    if (typeof m !== 'string' && !isPlainJSON(m, depth + 1)) {
      return false;
    }
  }
  return true;
};

// isData is the strict variant for what comes from an author or goes to a peer:
// no accessors, and nothing that ours says is not to be copied.
const isData = (v, ours, depth) => {
  if (typeof v !== 'object' || v === null) {
    return isPlainJSON(v, 0);
  }
  if (depth > FAST_DEPTH || ours(v)) {
    return false;
  }
  const proto = getPrototypeOf(v);
  if (proto !== ObjectPrototype && proto !== ArrayPrototype) {
    return false;
  }
  const keys = keysOf(v);
  const n = keys.length;
  if (ownKeys(v).length !== (isArray(v) ? v.length + 1 : n)) {
    return false;
  }
  for (let i = 0; i < n; i++) {
    const d = getOwnPropertyDescriptor(v, keys[i]);
    if (d === undefined || !hasOwn(d, 'value') || !isData(d.value, ours, depth + 1)) {
      return false;
    }
  }
  return true;
};

// stringify is JSON.stringify for what isPlainJSON accepted. A toJSON on a
// prototype would be called by the native one, and the engine's keeps its place in
// an array, which setters of numbers on a prototype break: then the slow way it is.
const stringify = (v, root) => {
  if ('toJSON' in ArrayPrototype || 'toJSON' in ObjectPrototype) {
    return parts('exact').exactText(v, root);
  }
  try {
    return stringifyJSON(v);
  } catch {
    return parts('exact').exactText(v, root);
  }
};

const losslessText = (v, root) => {
  const plain = nativeText(v);
  if (plain !== undefined) {
    return plain;
  }
  if (isPlainJSON(v, 0)) {
    const text = stringify(v, root);
    if (typeof text === 'string') {
      return text;
    }
  }
  return parts('exact').exactText(v, root);
};

const lossyErrors = newWeakMap();
const lossy = (e) => (isObject(e) ? lossyErrors.get(e) : undefined);
