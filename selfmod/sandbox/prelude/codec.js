// A part, with peer.js: the codec: a value that crosses to another machine as one JSON value.
//
// A primitive or plain JSON data is itself. Everything else is an object with
// the key "$", only at the top:
//
//   {"$":"u"}                undefined
//   {"$":"f","h":7}          a function of the sender, handle 7
//   {"$":"o","h":7}          a live object of the sender; "a" for a live array
//   {"$":"y","h":7}          an object of the receiver that comes home
//   {"$":"m"}                (answers of get only) the member is a function
//   {"$":"g","n":[node…],"r":slot}   a graph
//
// A node is an array whose first element is its kind; a slot inside a node is a
// primitive, or an array:
//
//   ["o", k, slot, …] object · ["O", …] null prototype · ["a", slot…] array ·
//   ["A", length, key, slot, …] array with holes or names · ["m", k, v, …] Map · ["s", v…] Set ·
//   ["d", ms|null] Date · ["r", source, flags, lastIndex] RegExp ·
//   ["b", base64] ArrayBuffer · ["t", kind, base64] typed array or DataView ·
//   ["e", name, message, code|null, stack, cause slot?, errors slot?] Error
//
//   ["#", i] node i · ["u"] undefined · ["n", "NaN"|"-0"|"Infinity"|"-Infinity"] ·
//   ["i", "123"] BigInt · ["S", key] registered symbol · ["w", name] well-known symbol ·
//   ["f"|"o"|"a"|"y", handle] as above
//
// encode and decode take a link: how functions and live objects become handles
// (link.out(v, kind) → [tag, handle]) and back (link.in(tag, handle) → value).
// A link without them refuses.

const {
  ArrayPrototype, CONTEXT_SHOWN, LIMITS, MAX_STACK, NativeArrayBuffer, NativeBigInt, NativeDataView,
  NativeDate, NativeError, NativeMap, NativeProxy, NativeRangeError, NativeRegExp, NativeRegistry, NativeSet,
  NativeSymbol, NativeUint8Array, NativeWeakRef, ObjectPrototype, answer, apply, awaitId, bigintText,
  bufferBytes, bufferTransfer, codedError, construct, create, cut, dateValue, defineProperty, endedError,
  errors, facades, failed, finish, freeze, fromBase64, getOwnPropertyDescriptor, getPrototypeOf, hasOwn, hide,
  host, isArray, isData, isError, isFiniteNumber, isObject, keysOf, labels, later, list, made, mapEach, mapSet, mapSize,
  nativeText, newMap, newSet, newWeakMap, own, ownKeys, parseJSON, quote, quoteName, reflectGet, reflectHas, reflectSet, regexpFlags,
  regexpSource, registerWith, setAdd, setEach, setPrototypeOf, settled, show, stringIndexOf, stringSlice,
  stringifyJSON, symbolFor, symbolKeyFor, symbolText, textOf, toBase64, typeError, typedBuffer, typedBytes,
  typedConstructors, typedOffset, viewBuffer, viewBytes, viewOffset, weakDeref,
} = core;

const wellKnown = create(null);
const wellKnownNames = newMap();
for (let names = ['iterator', 'asyncIterator', 'toPrimitive', 'toStringTag', 'hasInstance', 'dispose', 'asyncDispose'], i = 0; i < names.length; i++) {
  const symbol = NativeSymbol[names[i]];
  if (typeof symbol === 'symbol') {
    wellKnown[names[i]] = symbol;
    wellKnownNames.set(symbol, names[i]);
  }
}

const DateProto = NativeDate.prototype;
const MapProto = NativeMap.prototype;
const SetProto = NativeSet.prototype;
const RegExpProto = NativeRegExp.prototype;
const ArrayBufferProto = NativeArrayBuffer.prototype;
const DataViewProto = NativeDataView.prototype;
const typedPrototypes = newMap();
for (let names = keysOf(typedConstructors), i = 0; i < names.length; i++) {
  typedPrototypes.set(typedConstructors[names[i]].prototype, names[i]);
}

// MAX_BYTES bounds binary data in one value: it is copied, as base64.
const MAX_BYTES = LIMITS.result;

const base64Of = (view) => {
  if (typedBytes(view) > MAX_BYTES) {
    throw new NativeRangeError('binary data of ' + typedBytes(view) + ' bytes is over the limit of ' + MAX_BYTES);
  }
  return toBase64(view);
};

// shapeOf decides how an object crosses: a builder's name, 'live', or 'callable'.
const shapeOf = (v) => {
  if (typeof v === 'function') {
    return 'callable';
  }
  const proto = getPrototypeOf(v);
  if (isArray(v)) {
    return proto === ArrayPrototype ? 'array' : 'live';
  }
  switch (proto) {
    case ObjectPrototype:
    case null:
      return 'record';
    case DateProto:
      return 'date';
    case MapProto:
      return 'map';
    case SetProto:
      return 'set';
    case RegExpProto:
      return 'regexp';
    case ArrayBufferProto:
      return 'buffer';
    case DataViewProto:
      return 'view';
  }
  if (typedPrototypes.has(proto)) {
    return 'typed';
  }
  return isError(v) ? 'error' : 'live';
};

// hasMethods says whether a plain object is more than data: then it crosses alive.
const hasMethods = (v) => {
  const keys = ownKeys(v);
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] === 'symbol') {
      return true;
    }
    const d = getOwnPropertyDescriptor(v, keys[i]);
    if (d === undefined || !hasOwn(d, 'value') || typeof d.value === 'function') {
      return true;
    }
  }
  return false;
};

// slot writes a value that is inside a node; objects get a node of their own.
const slot = (g, v) => {
  switch (typeof v) {
    case 'string':
      return quote(v);
    case 'boolean':
      return v ? 'true' : 'false';
    case 'number':
      if (isFiniteNumber(v) && (v !== 0 || 1 / v > 0)) {
        return '' + v;
      }
      return '["n","' + (v === 0 ? '-0' : v) + '"]';
    case 'undefined':
      return '["u"]';
    case 'bigint':
      return '["i","' + bigintText(v) + '"]';
    case 'symbol': {
      const key = symbolKeyFor(v);
      if (key !== undefined) {
        return '["S",' + quote(key) + ']';
      }
      const name = wellKnownNames.get(v);
      if (name === undefined) {
        throw typeError('a symbol cannot cross to another plugin (Symbol.for(…) can)');
      }
      return '["w","' + name + '"]';
    }
  }
  if (v === null) {
    return 'null';
  }
  const known = g.index.get(v);
  if (known !== undefined) {
    return known;
  }
  const ours = g.link.own(v);
  let shape = ours ? 'live' : shapeOf(v);
  if (shape === 'record' && g.link.live && hasMethods(v)) {
    shape = 'live';
  }
  let text;
  if (shape === 'live' && !g.link.live && typeof v === 'object') {
    shape = 'record'; // structuredClone copies what an instance owns
  }
  if (shape === 'live' || shape === 'callable') {
    const out = g.link.out(v);
    text = '["' + out[0] + '",' + out[1] + ']';
  } else {
    text = '["#",' + g.todo.length + ']';
    if (g.depth >= LIMITS.depth) {
      throw new NativeRangeError('a value that crosses to another plugin, or is cloned, is nested deeper than ' + LIMITS.depth);
    }
    g.todo[g.todo.length] = { __proto__: null, v, shape, depth: g.depth + 1 };
  }
  g.index.set(v, text);
  return text;
};

const recordNode = (g, v) => {
  let text = getPrototypeOf(v) === null ? '["O"' : '["o"';
  const keys = keysOf(v);
  for (let i = 0; i < keys.length; i++) {
    text += ',' + quote(keys[i]) + ',' + slot(g, v[keys[i]]);
  }
  return text + ']';
};

const arrayNode = (g, v) => {
  const n = v.length;
  const keys = keysOf(v);
  let dense = keys.length === n;
  for (let i = 0; dense && i < n; i++) {
    dense = hasOwn(v, i);
  }
  let text = dense ? '["a"' : '["A",' + n;
  if (dense) {
    for (let i = 0; i < n; i++) {
      text += ',' + slot(g, v[i]);
    }
  } else {
    for (let i = 0; i < keys.length; i++) {
      text += ',' + quote(keys[i]) + ',' + slot(g, v[keys[i]]);
    }
  }
  return text + ']';
};

const errorNode = (g, v) => {
  const code = textOf(v, 'code');
  let text = '["e",' + quote(textOf(v, 'name') || 'Error') + ',' + quote(textOf(v, 'message')) + ',' + (code === '' ? 'null' : quote(code)) + ',' + quote(cut(textOf(v, 'stack'), MAX_STACK));
  const all = own(v, 'errors');
  if (hasOwn(v, 'cause') || isArray(all)) {
    text += ',' + slot(g, own(v, 'cause'));
    text += isArray(all) ? ',' + slot(g, all) : '';
  }
  return text + ']';
};

const nodeOf = (g, v, shape) => {
  switch (shape) {
    case 'record':
      return recordNode(g, v);
    case 'array':
      return arrayNode(g, v);
    case 'date': {
      const t = dateValue(v);
      return '["d",' + (isFiniteNumber(t) ? t : 'null') + ']';
    }
    case 'map': {
      let text = '["m"';
      mapEach(v, (value, key) => {
        text += ',' + slot(g, key) + ',' + slot(g, value);
      });
      return text + ']';
    }
    case 'set': {
      let text = '["s"';
      setEach(v, (value) => {
        text += ',' + slot(g, value);
      });
      return text + ']';
    }
    case 'regexp':
      return '["r",' + quote(regexpSource(v)) + ',' + quote(regexpFlags(v)) + ',' + (+own(v, 'lastIndex') || 0) + ']';
    case 'buffer':
      return '["b","' + base64Of(new NativeUint8Array(v, 0, bufferBytes(v))) + '"]';
    case 'view':
      return '["t","DataView","' + base64Of(new NativeUint8Array(viewBuffer(v), viewOffset(v), viewBytes(v))) + '"]';
    case 'typed':
      return '["t","' + typedPrototypes.get(getPrototypeOf(v)) + '","' + base64Of(new NativeUint8Array(typedBuffer(v), typedOffset(v), typedBytes(v))) + '"]';
  }
  return errorNode(g, v);
};

// encodeGraph walks breadth first with a list, so that depth costs no stack.
const encodeGraph = (v, link) => {
  const g = { __proto__: null, link, index: newMap(), todo: list(), depth: 0 };
  const root = slot(g, v);
  let nodes = '';
  for (let i = 0; i < g.todo.length; i++) {
    g.depth = g.todo[i].depth;
    nodes += (i === 0 ? '' : ',') + nodeOf(g, g.todo[i].v, g.todo[i].shape);
    g.todo[i] = null;
  }
  return '{"$":"g","n":[' + nodes + '],"r":' + root + '}';
};

// encode returns the JSON text of v's encoded form.
const encode = (v, link) => {
  const plain = nativeText(v, true);
  if (plain !== undefined && (typeof v !== 'object' || v === null || !hasOwn(v, '$'))) {
    return plain;
  }
  switch (typeof v) {
    case 'undefined':
      return '{"$":"u"}';
    case 'function':
      return encodeHandle(v, link);
    case 'object':
      if (isData(v, link.own, 0) && !hasOwn(v, '$') && !('toJSON' in ArrayPrototype) && !('toJSON' in ObjectPrototype)) {
        try {
          return stringifyJSON(v);
        } catch {
          return encodeGraph(v, link); // see stringify
        }
      }
      if (link.live && (link.own(v) || shapeOf(v) === 'live' || (shapeOf(v) === 'record' && hasMethods(v)))) {
        return encodeHandle(v, link);
      }
  }
  return encodeGraph(v, link);
};

const encodeHandle = (v, link) => {
  const out = link.out(v);
  return '{"$":"' + out[0] + '","h":' + out[1] + '}';
};

const special = (name) => (name === 'NaN' ? NaN : name === '-0' ? -0 : name === 'Infinity' ? Infinity : -Infinity);

// decode makes this machine's own value of an encoded form that parseJSON read.
const decode = (v, link) => {
  if (typeof v !== 'object' || v === null || !hasOwn(v, '$')) {
    return v;
  }
  const kind = v.$;
  if (kind === 'u') {
    return undefined;
  }
  return kind === 'g' ? decodeGraph(v, link) : link.in(kind, own(v, 'h'));
};

// bare makes the empty object of a node, so that cycles have something to point to.
const bare = (n) => {
  switch (n[0]) {
    case 'o':
      return {};
    case 'O':
      return create(null);
    case 'a':
    case 'A':
      return [];
    case 'm':
      return new NativeMap();
    case 's':
      return new NativeSet();
    case 'd':
      return new NativeDate(n[1] === null ? NaN : n[1]);
    case 'r': {
      const r = new NativeRegExp(n[1], n[2]);
      r.lastIndex = n[3];
      return r;
    }
    case 'b':
      return typedBuffer(fromBase64(n[1]));
    case 't': {
      const buffer = typedBuffer(fromBase64(n[2]));
      return n[1] === 'DataView' ? new NativeDataView(buffer) : new typedConstructors[n[1]](buffer);
    }
    case 'e': {
      const named = n[1] === 'AggregateError' ? undefined : errors[n[1]];
      const e = n[1] === 'AggregateError' ? new errors.AggregateError([], n[2]) : new (named || NativeError)(n[2]);
      if (named === undefined && n[1] !== 'AggregateError') {
        hide(e, 'name', n[1]);
      }
      if (n[3] !== null) {
        show(e, 'code', n[3]);
      }
      hide(e, 'stack', n[4]);
      return e;
    }
  }
  throw typeError('the value is not encoded as it should be');
};

const unslot = (g, s) => {
  if (typeof s !== 'object' || s === null) {
    return s;
  }
  switch (s[0]) {
    case '#':
      return g.made[s[1]];
    case 'u':
      return undefined;
    case 'n':
      return special(s[1]);
    case 'i':
      return NativeBigInt(s[1]);
    case 'S':
      return symbolFor(s[1]);
    case 'w':
      return wellKnown[s[1]];
  }
  return g.link.in(s[0], s[1]);
};

const fill = (g, o, n) => {
  switch (n[0]) {
    case 'o':
    case 'O':
      for (let i = 1; i < n.length; i += 2) {
        show(o, n[i], unslot(g, n[i + 1]));
      }
      return;
    case 'a':
      for (let i = 1; i < n.length; i++) {
        show(o, i - 1, unslot(g, n[i]));
      }
      return;
    case 'A':
      o.length = n[1];
      for (let i = 2; i < n.length; i += 2) {
        show(o, n[i], unslot(g, n[i + 1]));
      }
      return;
    case 'm':
      for (let i = 1; i < n.length; i += 2) {
        mapSet(o, unslot(g, n[i]), unslot(g, n[i + 1]));
      }
      return;
    case 's':
      for (let i = 1; i < n.length; i++) {
        setAdd(o, unslot(g, n[i]));
      }
      return;
    case 'e':
      if (n.length > 5) {
        hide(o, 'cause', unslot(g, n[5]));
      }
      if (n.length > 6) {
        hide(o, 'errors', unslot(g, n[6]));
      }
  }
};

const decodeGraph = (v, link) => {
  const nodes = v.n;
  const g = { __proto__: null, link, made: list() };
  for (let i = 0; i < nodes.length; i++) {
    g.made[i] = bare(nodes[i]);
  }
  for (let i = 0; i < nodes.length; i++) {
    fill(g, g.made[i], nodes[i]);
  }
  return unslot(g, v.r);
};

// structuredClone is the codec without handles.
const cloneLink = {
  __proto__: null,
  live: false,
  own: (v) => labels.has(v),
  out(v) {
    const e = new NativeError((typeof v === 'function' ? 'a function' : 'an object that belongs to the sandbox') + ' could not be cloned');
    hide(e, 'name', 'DataCloneError');
    throw e;
  },
};

const structuredClone = (value, options) => {
  if (!isObject(value)) {
    if (typeof value === 'symbol') {
      return cloneLink.out(value);
    }
    return value;
  }
  const copy = decode(parseJSON(encodeGraph(value, cloneLink)), cloneLink);
  const transfer = isObject(options) ? options.transfer : undefined;
  if (isArray(transfer)) {
    for (let i = 0; i < transfer.length; i++) {
      bufferTransfer(transfer[i]);
    }
  }
  return copy;
};
