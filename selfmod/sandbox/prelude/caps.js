// Length caps. The engine cannot be interrupted inside a native loop; one over an
// array-like of length 4e9 would hang the worker until it is killed. So natives
// that loop by length refuse absurd ones at once. This stops accidents, not
// attacks: a getter can lie the second time, and then the kill is what is left.

const CAP = 1e7;
const MAX_TEXT = 1 << 28;

const tooLong = (what, n) => new NativeRangeError(what + ': a length of ' + n + ' is over the limit of ' + CAP + ' in the temporary Plugin sandbox');

const capLength = (what, v) => {
  if (isObject(v)) {
    const n = v.length;
    if (n > CAP) {
      throw tooLong(what, n);
    }
  }
};

// replace puts a wrapper in the place of a native, looking like it.
const replace = (o, name, wrapper) => {
  const native = o[name];
  defineProperty(wrapper, 'name', { __proto__: null, value: native.name, configurable: true });
  defineProperty(wrapper, 'length', { __proto__: null, value: native.length, configurable: true });
  hide(o, name, wrapper);
};

for (
  let names = [
      'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flat', 'flatMap', 'forEach',
      'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some', 'sort',
      'splice', 'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with',
    ],
    i = 0;
  i < names.length;
  i++
) {
  const native = ArrayPrototype[names[i]];
  if (typeof native !== 'function') {
    continue;
  }
  const what = 'Array.prototype.' + names[i];
  replace(ArrayPrototype, names[i], {
    method(...args) {
      if (isObject(this) && this.length > CAP) {
        throw tooLong(what, this.length);
      }
      return apply(native, this, args);
    },
  }.method);
}

{
  const native = ArrayPrototype.concat;
  replace(ArrayPrototype, 'concat', {
    method(...args) {
      capLength('Array.prototype.concat', this);
      for (let i = 0; i < args.length; i++) {
        if (isArray(args[i])) {
          capLength('Array.prototype.concat', args[i]);
        }
      }
      return apply(native, this, args);
    },
  }.method);
}

// Array.from over a plain iterable is a loop here, so that it can be interrupted.
{
  const native = Array.from;
  replace(Array, 'from', {
    method(items, map, self) {
      if (typeof items === 'string' || !isObject(items) || isArray(items) || items[NativeSymbol.iterator] == null) {
        if (typeof items !== 'string') {
          capLength('Array.from', items);
        }
        return arguments.length < 2 ? apply(native, this, [items]) : apply(native, this, [items, map, self]);
      }
      if (map !== undefined && typeof map !== 'function') {
        throw typeError('Array.from: the second argument must be a function, got ' + kindOf(map));
      }
      const all = typeof this === 'function' ? new this() : [];
      let n = 0;
      for (const v of items) {
        if (n >= CAP) {
          throw tooLong('Array.from', 'more than ' + CAP);
        }
        show(all, n, map === undefined ? v : apply(map, self, [v, n]));
        n++;
      }
      all.length = n;
      return all;
    },
  }.method);
}

// replaceAll of a text by a text copies without end; its result is measured first.
{
  const native = String.prototype.replaceAll;
  replace(String.prototype, 'replaceAll', {
    method(search, replacement) {
      if (typeof this === 'string' && typeof search === 'string' && typeof replacement === 'string') {
        const step = search.length > 0 ? search.length : 1;
        if ((this.length / step + 1) * replacement.length > MAX_TEXT) {
          let n = 0;
          for (let at = stringIndexOf(this, search, 0); at >= 0 && at <= this.length; at = stringIndexOf(this, search, at + step)) {
            if (++n * replacement.length > MAX_TEXT) {
              throw new NativeRangeError('String.prototype.replaceAll: the result would be longer than ' + MAX_TEXT + ' characters');
            }
            if (at + step > this.length) {
              break;
            }
          }
        }
      }
      return apply(native, this, [search, replacement]);
    },
  }.method);
}

{
  const native = String.raw;
  replace(String, 'raw', {
    method(strings, ...values) {
      if (isObject(strings)) {
        capLength('String.raw', strings.raw);
      }
      const args = [strings];
      for (let i = 0; i < values.length; i++) {
        show(args, i + 1, values[i]);
      }
      return apply(native, this, args);
    },
  }.method);
}

// Constructors of typed arrays take array-likes; so does their from.
for (let names = keysOf(typedConstructors), i = 0; i < names.length; i++) {
  const native = typedConstructors[names[i]];
  const what = 'new ' + names[i];
  const capped = new NativeProxy(native, {
    __proto__: null,
    construct(target, args, newTarget) {
      const first = args.length > 0 ? args[0] : undefined;
      if (isObject(first) && typedTag(first) === undefined) {
        capLength(what, first);
      }
      return construct(target, args, newTarget === capped ? target : newTarget);
    },
  });
  hide(native.prototype, 'constructor', capped);
  hide(globalThis, names[i], capped);
}
{
  const TypedArray = getPrototypeOf(NativeUint8Array);
  const native = TypedArray.from;
  replace(TypedArray, 'from', {
    method(items, ...rest) {
      capLength('TypedArray.from', items);
      return apply(native, this, rest.length === 0 ? [items] : [items, rest[0], rest[1]]);
    },
  }.method);
}
