// Lossless JSON: null, booleans, strings, finite numbers except -0, dense plain
// arrays, and plain objects with only own enumerable string keys; no cycles.
//
//   losslessText(value, root)  the JSON text; throws a Lossy that names the path
//   lossy(error)               the { path, kind, what, hint } of such an error
//
// A fast recursive walk says yes to nearly everything; what it does not accept
// goes through an exact iterative one, which accepts depth up to LIMITS.depth,
// refuses accessors too, and finds out what is wrong and where.

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
  if (isArray(v)) {
    const n = v.length;
    if (proto !== ArrayPrototype || ownKeys(v).length !== n + 1) {
      return false;
    }
    for (let i = 0; i < n; i++) {
      if (!isPlainJSON(v[i], depth + 1)) {
        return false;
      }
    }
    return true;
  }
  if (proto !== ObjectPrototype && proto !== null) {
    return false;
  }
  const keys = keysOf(v);
  const n = keys.length;
  if (ownKeys(v).length !== n) {
    return false;
  }
  for (let i = 0; i < n; i++) {
    if (!isPlainJSON(v[keys[i]], depth + 1)) {
      return false;
    }
  }
  return true;
};

// stringify is JSON.stringify for what isPlainJSON accepted. A toJSON on a
// prototype would be called by the native one, so then the slow way it is.
const stringify = (v, root) => {
  if (hasOwn(ObjectPrototype, 'toJSON') || hasOwn(ArrayPrototype, 'toJSON')) {
    return exactText(v, root);
  }
  return stringifyJSON(v);
};

const losslessText = (v, root) => {
  switch (typeof v) {
    case 'string':
      return quote(v);
    case 'boolean':
      return v ? 'true' : 'false';
  }
  if (isPlainJSON(v, 0)) {
    const text = stringify(v, root);
    if (typeof text === 'string') {
      return text;
    }
  }
  return exactText(v, root);
};

const lossyErrors = newWeakMap();
const lossy = (e) => (isObject(e) ? lossyErrors.get(e) : undefined);

// memberPath prints one step: .name, [2] or ["odd name"].
const memberPath = (k) => {
  if (typeof k === 'number') {
    return '[' + k + ']';
  }
  if (typeof k === 'symbol') {
    return '[' + symbolText(k) + ']';
  }
  let plain = k.length > 0 && k.length <= 64;
  for (let i = 0; plain && i < k.length; i++) {
    const c = charCodeAt(k, i);
    plain = c === 36 || c === 95 || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || (i > 0 && c >= 48 && c <= 57);
  }
  return plain ? '.' + k : '[' + quote(cut(k, 64)) + ']';
};

// An exact walk keeps one frame an open container: { v, keys, i, n, array }.
const pathOf = (root, frames, key) => {
  let path = root;
  const deep = frames.length > 40;
  for (let i = 0; i < frames.length; i++) {
    if (deep && i === 20) {
      path += '…';
      i = frames.length - 20;
    }
    const f = frames[i];
    if (f.i > 0) {
      path += memberPath(f.array ? f.i - 1 : f.keys[f.i - 1]);
    }
  }
  return key === undefined ? path : path + memberPath(key);
};

const refuse = (root, frames, key, kind, what, hint) => {
  const path = pathOf(root, frames, key);
  const e = new NativeTypeError(path + ' ' + what);
  lossyErrors.set(e, { __proto__: null, path, kind, what, hint: hint || '' });
  throw e;
};

// className is the name of what made an object, for texts only.
const className = (v) => {
  try {
    const proto = getPrototypeOf(v);
    const maker = proto === null ? undefined : getOwnPropertyDescriptor(proto, 'constructor');
    const f = maker && own(maker, 'value');
    const name = typeof f === 'function' ? own(getOwnPropertyDescriptor(f, 'name') || { __proto__: null }, 'value') : undefined;
    return typeof name === 'string' && name !== '' ? cut(name, 64) : '';
  } catch {
    return '';
  }
};

// complain says what is wrong with a value that is no JSON at all.
const complain = (root, frames, v) => {
  const say = (what, hint) => refuse(root, frames, undefined, 'data', what, hint);
  switch (typeof v) {
    case 'undefined':
      return say('is undefined', frames.length === 0 ? '' : 'leave it out or use null');
    case 'number':
      return say('is ' + (v === 0 ? '-0' : NativeString(v)), v === 0 ? 'use 0' : 'use null or a string');
    case 'bigint':
      return say('is a BigInt', 'pass it as a string: String(value)');
    case 'function':
      return say('is a function', 'return data, not code');
    case 'symbol':
      return say('is a symbol', 'use a string');
  }
  const name = className(v);
  switch (name) {
    case 'Date':
      return say('is a Date', 'use date.toISOString()');
    case 'Map':
      return say('is a Map', 'use Object.fromEntries(map)');
    case 'Set':
      return say('is a Set', 'use Array.from(set)');
    case 'Promise':
      return say('is a Promise', 'await it');
  }
  const article = name === '' ? 'an object of a class' : 'an instance of ' + name;
  return say('is ' + article, 'return a plain object, e.g. { ...value }');
};

// open starts a container, after checking its shape.
const open = (root, frames, v) => {
  if (frames.length >= LIMITS.depth) {
    refuse(root, frames, undefined, 'deep', 'is nested deeper than ' + LIMITS.depth);
  }
  const proto = getPrototypeOf(v);
  const all = ownKeys(v);
  if (isArray(v)) {
    if (proto !== ArrayPrototype) {
      complain(root, frames, v);
    }
    const n = v.length;
    if (all.length !== n + 1) {
      for (let i = 0; i < n; i++) {
        if (!hasOwn(v, i)) {
          refuse(root, frames, i, 'data', 'is a hole in a sparse array', 'fill it, with null for instance');
        }
      }
      refuse(root, frames, undefined, 'keys', 'is an array with extra properties', 'use an object');
    }
    return { __proto__: null, v, keys: null, n, i: 0, array: true };
  }
  if (proto !== ObjectPrototype && proto !== null) {
    complain(root, frames, v);
  }
  for (let i = 0; i < all.length; i++) {
    const k = all[i];
    if (typeof k === 'symbol') {
      refuse(root, frames, undefined, 'keys', 'has the symbol key ' + cut(symbolText(k), 64));
    }
    const d = getOwnPropertyDescriptor(v, k);
    if (d !== undefined && !d.enumerable) {
      refuse(root, frames, k, 'keys', 'is not enumerable');
    }
  }
  return { __proto__: null, v, keys: all, n: all.length, i: 0, array: false };
};

// read takes a member without calling accessors.
const read = (root, frames, v, k) => {
  const d = getOwnPropertyDescriptor(v, k);
  if (d === undefined) {
    refuse(root, frames, undefined, 'data', 'vanished while it was read');
  }
  if (!hasOwn(d, 'value')) {
    refuse(root, frames, undefined, 'keys', 'is an accessor, not data', 'store the value itself');
  }
  return d.value;
};

// exactText walks iteratively and writes the text on its way.
const exactText = (v, root) => {
  const frames = list();
  const onPath = newSet();
  let text = '';
  let value = v;
  for (;;) {
    // Write one value, or open it.
    if (typeof value === 'object' && value !== null) {
      if (onPath.has(value)) {
        refuse(root, frames, undefined, 'circular', 'is circular');
      }
      const frame = open(root, frames, value);
      onPath.add(value);
      frames[frames.length] = frame;
      text += frame.array ? '[' : '{';
    } else if (isPlainJSON(value, 0)) {
      text += typeof value === 'string' ? quote(value) : '' + value;
    } else {
      complain(root, frames, value);
    }
    // Close what is finished, then take the next member.
    for (;;) {
      if (frames.length === 0) {
        return text;
      }
      const f = frames[frames.length - 1];
      if (f.i < f.n) {
        const k = f.array ? f.i : f.keys[f.i];
        text += (f.i > 0 ? ',' : '') + (f.array ? '' : quote(k) + ':');
        f.i++;
        value = read(root, frames, f.v, k);
        break;
      }
      text += f.array ? ']' : '}';
      onPath.delete(f.v);
      frames.length--;
    }
  }
};

// freezeDeep freezes what came out of parseJSON.
const freezeDeep = (v) => {
  if (typeof v === 'object' && v !== null) {
    freezeAt(v, 0);
  }
  return v;
};

const freezeAt = (o, depth) => {
  if (depth > FAST_DEPTH) {
    return freezeIteratively(o);
  }
  freeze(o);
  if (isArray(o)) {
    const n = o.length;
    for (let i = 0; i < n; i++) {
      const m = o[i];
      if (typeof m === 'object' && m !== null) {
        freezeAt(m, depth + 1);
      }
    }
    return;
  }
  const keys = keysOf(o);
  const n = keys.length;
  for (let i = 0; i < n; i++) {
    const m = o[keys[i]];
    if (typeof m === 'object' && m !== null) {
      freezeAt(m, depth + 1);
    }
  }
};

const freezeIteratively = (v) => {
  const stack = list();
  stack[0] = v;
  while (stack.length > 0) {
    const o = stack[stack.length - 1];
    stack.length--;
    freeze(o);
    const keys = keysOf(o);
    for (let i = 0; i < keys.length; i++) {
      const m = o[keys[i]];
      if (typeof m === 'object' && m !== null) {
        stack[stack.length] = m;
      }
    }
  }
};
