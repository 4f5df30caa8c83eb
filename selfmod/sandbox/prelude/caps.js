// Length caps. The engine cannot be interrupted inside a native loop; one over an
// array-like of length 4e9 would hang the worker until it is killed. So natives
// that loop by length refuse absurd ones at once. This stops accidents, not
// attacks: a getter can lie the second time, and then the kill is what is left.
//
// A capped native is a Proxy of it, which has its name, length and look, and
// costs a machine less than a function of its own.

const CAP = 1e7;
const MAX_TEXT = 1 << 28;

const tooLong = (what, n) => new NativeRangeError(what + ': a length of ' + n + ' is over the limit of ' + CAP + told(' in the temporary Plugin sandbox'));

const capLength = (what, v) => {
  if (isObject(v)) {
    const n = v.length;
    if (n > CAP) {
      throw tooLong(what, n);
    }
  }
};

// cap puts Proxies with one handler in the places of natives.
const cap = (o, names, call) => {
  const handler = { __proto__: null, apply: call };
  for (let i = 0; i < names.length; i++) {
    o[names[i]] = new NativeProxy(o[names[i]], handler);
  }
};

cap(
  ArrayPrototype,
  [
    'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flat', 'flatMap', 'forEach',
    'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some', 'sort',
    'splice', 'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with',
  ],
  (native, self, args) => {
    if (isObject(self) && self.length > CAP) {
      throw tooLong('Array.prototype.' + native.name, self.length);
    }
    return apply(native, self, args);
  },
);

cap(ArrayPrototype, ['concat'], (native, self, args) => {
  capLength('Array.prototype.concat', self);
  for (let i = 0; i < args.length; i++) {
    if (isArray(args[i])) {
      capLength('Array.prototype.concat', args[i]);
    }
  }
  return apply(native, self, args);
});

// Array.from over a plain iterable is a loop here, so that it can be interrupted.
cap(Array, ['from'], (native, self, args) => {
  const items = args.length > 0 ? args[0] : undefined;
  if (!isObject(items) || isArray(items) || items[NativeSymbol.iterator] == null) {
    capLength('Array.from', items);
    return apply(native, self, args);
  }
  const map = args.length > 1 ? args[1] : undefined;
  if (map !== undefined && typeof map !== 'function') {
    throw typeError('Array.from: the second argument must be a function, got ' + kindOf(map));
  }
  const all = typeof self === 'function' ? construct(self, []) : [];
  let n = 0;
  for (const v of items) {
    if (n >= CAP) {
      throw tooLong('Array.from', 'more than ' + CAP);
    }
    show(all, n, map === undefined ? v : apply(map, args.length > 2 ? args[2] : undefined, [v, n]));
    n++;
  }
  all.length = n;
  return all;
});

// replaceAll of a text by a text copies without end; its result is measured first.
cap(String.prototype, ['replaceAll'], (native, text, args) => {
  const search = args.length > 0 ? args[0] : undefined;
  const replacement = args.length > 1 ? args[1] : undefined;
  if (typeof text === 'string' && typeof search === 'string' && typeof replacement === 'string') {
    const step = search.length > 0 ? search.length : 1;
    if ((text.length / step + 1) * replacement.length > MAX_TEXT) {
      let n = 0;
      for (let at = stringIndexOf(text, search, 0); at >= 0; at = at + step > text.length ? -1 : stringIndexOf(text, search, at + step)) {
        if (++n * replacement.length > MAX_TEXT) {
          throw new NativeRangeError('String.prototype.replaceAll: the result would be longer than ' + MAX_TEXT + ' characters');
        }
      }
    }
  }
  return apply(native, text, args);
});

cap(String, ['raw'], (native, self, args) => {
  const strings = args.length > 0 ? args[0] : undefined;
  if (isObject(strings)) {
    capLength('String.raw', strings.raw);
  }
  return apply(native, self, args);
});

cap(getPrototypeOf(NativeUint8Array), ['from'], (native, self, args) => {
  capLength('TypedArray.from', args.length > 0 ? args[0] : undefined);
  return apply(native, self, args);
});

// Constructors of typed arrays take array-likes.
for (
  let names = keysOf(typedConstructors),
    i = 0,
    handler = {
      __proto__: null,
      construct(native, args, newTarget) {
        const first = args.length > 0 ? args[0] : undefined;
        if (isObject(first) && typedTag(first) === undefined) {
          capLength('new ' + native.name, first);
        }
        return construct(native, args, newTarget);
      },
    };
  i < names.length;
  i++
) {
  const native = typedConstructors[names[i]];
  const capped = new NativeProxy(native, handler);
  native.prototype.constructor = capped;
  globalThis[names[i]] = capped;
}
