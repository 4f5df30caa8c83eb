// The exact walk over a value that is to be lossless JSON: it writes the text, or
// says what is wrong and where.

const {
  ArrayPrototype, LIMITS, NativeString, NativeTypeError, ObjectPrototype, charCodeAt, cut,
  getOwnPropertyDescriptor, getPrototypeOf, hasOwn, isArray, isPlainJSON, list, lossyErrors, newSet, own,
  ownKeys, quote, quoteName, symbolText,
} = core;

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
  return plain ? '.' + k : '[' + quoteName(k, 64) + ']';
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


return { exactText, memberPath, className };
