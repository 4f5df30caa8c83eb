// A part: how console prints values: readable, bounded, and without running code of the
// values: getters are not called, Proxies of peers are not asked.

const {
  LIMITS, NativeNumber, NativeString, bigintText, bufferBytes, charCodeAt, classOf, cut, dateISO, dateValue,
  functionText, getOwnPropertyDescriptor, getPrototypeOf, hasOwn, isArray, isError, isFiniteNumber, isObject,
  labels, mapEach, mapSize, newSet, own, ownKeys, parts, quote, regexpFlags, regexpSource, setEach, setSize,
  stringIndexOf, stringSlice, stringStartsWith, symbolText, textOf, typedLength, typedTag,
} = core;

const { className, memberPath } = parts('exact');

const INSPECT_DEPTH = 4;
const INSPECT_ITEMS = 100;
const INSPECT_STRING = 2000;

// A printer has a budget of characters, so that a huge value ends early.
const newPrinter = (limit) => ({ __proto__: null, text: '', limit, open: newSet() });

const put = (p, s) => {
  p.text += s;
};
const full = (p) => p.text.length >= p.limit;

const quoted = (s) => {
  const text = s.length > INSPECT_STRING ? stringSlice(s, 0, INSPECT_STRING) : s;
  const body = stringIndexOf(text, "'") < 0 && stringIndexOf(text, '\n') < 0 && stringIndexOf(text, '\\') < 0 ? "'" + text + "'" : quote(text);
  return s.length > INSPECT_STRING ? body + '… (' + (s.length - INSPECT_STRING) + ' more characters)' : body;
};

const inspectPrimitive = (v) => {
  switch (typeof v) {
    case 'string':
      return quoted(v);
    case 'number':
      return v === 0 && 1 / v < 0 ? '-0' : '' + v;
    case 'bigint':
      return bigintText(v) + 'n';
    case 'symbol':
      return symbolText(v);
  }
  return NativeString(v); // undefined, null, booleans
};

// errorText is an error as console shows it: its stack under its name and message.
const errorText = (e) => {
  const name = textOf(e, 'name') || 'Error';
  const message = textOf(e, 'message');
  const stack = textOf(e, 'stack');
  const head = message === '' ? name : name + ': ' + message;
  if (stack === '') {
    return '[' + head + ']';
  }
  const end = stack[stack.length - 1] === '\n' ? stringSlice(stack, 0, stack.length - 1) : stack;
  return stringStartsWith(stack, head) ? end : head + '\n' + end;
};

const functionLabel = (f) => {
  const d = getOwnPropertyDescriptor(f, 'name');
  const name = d === undefined ? '' : own(d, 'value');
  const kind = stringStartsWith(functionText(f), 'class') ? 'class' : 'Function';
  return typeof name === 'string' && name !== '' ? '[' + kind + ': ' + cut(name, 100) + ']' : '[' + kind + ' (anonymous)]';
};

// printMembers writes the own enumerable members of v, up to a number of them.
const printMembers = (p, v, depth, first) => {
  const keys = ownKeys(v);
  let count = first;
  for (let i = 0; i < keys.length && !full(p); i++) {
    const k = keys[i];
    const d = getOwnPropertyDescriptor(v, k);
    if (d === undefined || !d.enumerable) {
      continue;
    }
    if (count - first >= INSPECT_ITEMS) {
      put(p, ', … ' + (keys.length - i) + ' more');
      break;
    }
    put(p, count === 0 ? ' ' : ', ');
    count++;
    const plain = typeof k === 'string' ? stringSlice(memberPath(k), 1) : '';
    put(p, typeof k === 'symbol' ? '[' + symbolText(k) + ']' : memberPath(k)[0] === '.' ? plain : quote(cut(k, 100)));
    put(p, ': ');
    if (hasOwn(d, 'value')) {
      print(p, d.value, depth + 1);
    } else {
      put(p, d.get === undefined ? '[Setter]' : d.set === undefined ? '[Getter]' : '[Getter/Setter]');
    }
  }
  return count;
};

const printArray = (p, v, depth, label) => {
  const n = v.length;
  put(p, label + '[');
  let shown = 0;
  for (let i = 0; i < n && !full(p); i++) {
    if (shown >= INSPECT_ITEMS) {
      put(p, ', … ' + (n - i) + ' more items');
      break;
    }
    const d = getOwnPropertyDescriptor(v, i);
    put(p, shown === 0 ? ' ' : ', ');
    shown++;
    if (d === undefined) {
      let to = i + 1;
      while (to < n && to < i + 100000 && !hasOwn(v, to)) {
        to++;
      }
      put(p, '<' + (to === i + 100000 ? n - i : to - i) + ' empty items>');
      i = to === i + 100000 ? n : to - 1;
    } else if (hasOwn(d, 'value')) {
      print(p, d.value, depth + 1);
    } else {
      put(p, '[Getter]');
    }
  }
  put(p, shown === 0 ? ']' : ' ]');
};

const printEntries = (p, v, depth, each, label, pairs) => {
  put(p, label + ' {');
  let i = 0;
  each(v, (value, key) => {
    if (full(p) || i > INSPECT_ITEMS) {
      return;
    }
    put(p, i === 0 ? ' ' : ', ');
    if (i++ === INSPECT_ITEMS) {
      put(p, '…');
      return;
    }
    if (pairs) {
      print(p, key, depth + 1);
      put(p, ' => ');
    }
    print(p, value, depth + 1);
  });
  put(p, i === 0 ? '}' : ' }');
};

const printObject = (p, v, depth) => {
  const label = labels.get(v);
  if (label !== undefined) {
    return put(p, '[' + label + ']');
  }
  if (typeof v === 'function') {
    return put(p, functionLabel(v));
  }
  if (isError(v)) {
    return put(p, errorText(v));
  }
  const tag = classOf(v);
  if (tag === '[object Date]') {
    const t = dateValue(v);
    return put(p, isFiniteNumber(t) ? dateISO(v) : 'Invalid Date');
  }
  if (tag === '[object RegExp]') {
    return put(p, '/' + regexpSource(v) + '/' + regexpFlags(v));
  }
  const name = className(v);
  if (depth > INSPECT_DEPTH) {
    return put(p, isArray(v) ? '[Array]' : '[' + (name || 'Object') + ']');
  }
  if (isArray(v)) {
    return printArray(p, v, depth, name === 'Array' || name === '' ? '' : name + '(' + v.length + ') ');
  }
  if (tag === '[object Map]') {
    return printEntries(p, v, depth, mapEach, 'Map(' + mapSize(v) + ')', true);
  }
  if (tag === '[object Set]') {
    return printEntries(p, v, depth, setEach, 'Set(' + setSize(v) + ')', false);
  }
  const typed = typedTag(v);
  if (typed !== undefined) {
    return printArray(p, v, depth, typed + '(' + typedLength(v) + ') ');
  }
  if (tag === '[object ArrayBuffer]') {
    return put(p, 'ArrayBuffer { byteLength: ' + bufferBytes(v) + ' }');
  }
  if (name !== 'Object') {
    put(p, (getPrototypeOf(v) === null ? '[Object: null prototype]' : name || 'Object') + ' ');
  }
  put(p, '{');
  put(p, printMembers(p, v, depth, 0) === 0 ? '}' : ' }');
};

// print writes one value.
const print = (p, v, depth) => {
  if (full(p)) {
    return;
  }
  if (!isObject(v)) {
    return put(p, inspectPrimitive(v));
  }
  if (p.open.has(v)) {
    return put(p, '[Circular]');
  }
  p.open.add(v);
  const before = p.text;
  try {
    printObject(p, v, depth);
  } catch {
    p.text = before + '[' + (typeof v === 'function' ? 'Function' : 'Object') + ']';
  }
  p.open.delete(v);
};

// inspect returns the text of one value, at most limit characters or a few more.
const inspect = (v, limit) => {
  const p = newPrinter(limit);
  print(p, v, 0);
  return p.text;
};

// directive writes what a % in a first argument asks for; false: it is no directive.
const directive = (p, c, v) => {
  switch (c) {
    case 's':
      put(p, typeof v === 'string' ? v : isObject(v) && !isError(v) ? inspect(v, p.limit) : typeof v === 'symbol' ? symbolText(v) : isError(v) ? errorText(v) : inspectPrimitive(v));
      return true;
    case 'd':
    case 'i':
    case 'f':
      put(p, typeof v === 'bigint' ? bigintText(v) + 'n' : isObject(v) || typeof v === 'symbol' ? 'NaN' : '' + (c === 'i' ? NativeNumber(v) - (NativeNumber(v) % 1) : NativeNumber(v)));
      return true;
    case 'o':
    case 'O':
    case 'j':
      print(p, v, 0);
      return true;
    case 'c':
      return true;
  }
  return false;
};

// formatLine is the text of one console call.
const formatLine = (args) => {
  const limit = LIMITS.consoleBytes;
  const p = newPrinter(limit);
  let next = 0;
  if (args.length > 1 && typeof args[0] === 'string' && stringIndexOf(args[0], '%') >= 0) {
    const format = args[0];
    next = 1;
    for (let i = 0; i < format.length && !full(p); i++) {
      const c = i + 1 < format.length ? format[i + 1] : '';
      if (format[i] !== '%' || c === '') {
        put(p, format[i]);
      } else if (c === '%') {
        put(p, '%');
        i++;
      } else if (next < args.length && directive(p, c, args[next])) {
        next++;
        i++;
      } else {
        put(p, '%');
      }
    }
    if (next < args.length) {
      put(p, ' ');
    }
  }
  for (let i = next; i < args.length && !full(p); i++) {
    if (i > next) {
      put(p, ' ');
    }
    if (typeof args[i] === 'string') {
      put(p, args[i]);
    } else {
      print(p, args[i], 0);
    }
  }
  return cutBytes(p.text, limit);
};

// cutBytes cuts a text so that its UTF-8 form has at most n bytes, and says so.
const cutBytes = (s, n) => {
  if (s.length * 3 <= n) {
    return s;
  }
  const room = n - 32;
  let bytes = 0;
  let at = 0;
  for (; at < s.length; at++) {
    const c = charCodeAt(s, at);
    bytes += c < 0x80 ? 1 : c < 0x800 ? 2 : 3; // a surrogate pair counts 6 instead of 4: on the safe side
    if (bytes > n) {
      break;
    }
  }
  if (at === s.length) {
    return s;
  }
  while (at > 0 && bytes > room) {
    at--;
    const c = charCodeAt(s, at);
    bytes -= c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
  }
  return stringSlice(s, 0, at) + '… (' + (s.length - at) + ' more characters)';
};

return { inspect, formatLine };
