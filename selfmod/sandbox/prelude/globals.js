// The globals of a mount: what it gets, what is a trap, what is missing.

const globalConsole = makeConsole();
const globalHarness = freeze({ defineTool, registerTool });

const SANDBOX = ' is not available in the temporary Plugin sandbox — ';

const TIMERS = "inject: ['timer'] on your plugin and use ctx.setTimeout / ctx.setInterval: they are effects, cleaned up when the plugin is unmounted";
const redirects = {
  __proto__: null,
  require: "inject: ['fs'] / inject: ['web'] / inject: ['bash'] on your plugin and use ctx.fs / ctx.web / ctx.bash; cordis_inspect what:\"services\" lists which of them this program has",
  setTimeout: TIMERS,
  setInterval: TIMERS,
  setImmediate: TIMERS + ' (or queueMicrotask(fn))',
  clearTimeout: TIMERS + '; what they return is a function that stops them',
  clearInterval: TIMERS + '; what they return is a function that stops them',
  fetch: "inject: ['web'] on your plugin and use ctx.web; cordis_inspect what:\"services\" shows whether this program has it",
};
const CODE = 'code cannot be made from text here; write it in the plugin, or mount a second plugin with cordis_mount';

const trap = (name) => {
  const f = function () {
    throw new NativeError(name + told(SANDBOX) + (redirects[name] || CODE));
  };
  hide(f, 'name', name);
  return f;
};

for (let names = keysOf(redirects), i = 0; i < names.length; i++) {
  hide(globalThis, names[i], trap(names[i]));
}

// Making code from text: the engine's parser is its weak spot when memory is
// short, so nothing of a running mount reaches it.
hide(globalThis, 'eval', trap('eval'));
const trapConstructor = (name, prototype) => {
  const f = trap(name);
  defineProperty(f, 'prototype', { __proto__: null, value: prototype, writable: false, enumerable: false, configurable: false });
  defineProperty(prototype, 'constructor', { __proto__: null, value: f, writable: true, enumerable: false, configurable: true });
  return f;
};
hide(globalThis, 'Function', trapConstructor('Function', FunctionPrototype));
trapConstructor('AsyncFunction', AsyncFunctionPrototype);
trapConstructor('GeneratorFunction', GeneratorFunctionPrototype);
trapConstructor('AsyncGeneratorFunction', AsyncGeneratorFunctionPrototype);

delete globalThis.SharedArrayBuffer;
delete globalThis.Atomics;
delete globalThis.WebAssembly;
delete globalThis.__host;
delete globalThis.__hold;
delete globalThis.__text;
delete globalThis.__data;
delete globalThis.__value;

// later defines a class of a part, which is read when it is first looked at.
const later = (name, part) => {
  const become = (value) => {
    try {
      hide(globalThis, name, value);
    } catch {
      // A mount may have frozen its global.
    }
    return value;
  };
  defineProperty(globalThis, name, { __proto__: null, get: () => become(parts(part)[name]), set: become, enumerable: false, configurable: true });
};

hide(globalThis, 'console', globalConsole);
hide(globalThis, 'harness', globalHarness);
hide(globalThis, 'btoa', { btoa: (text) => parts('encoding').btoa(text) }.btoa);
hide(globalThis, 'atob', { atob: (text) => parts('encoding').atob(text) }.atob);
later('TextEncoder', 'encoding');
later('TextDecoder', 'encoding');
later('AbortController', 'abort');
later('AbortSignal', 'abort');
hide(globalThis, 'structuredClone', { structuredClone: (value, options) => parts('peer').structuredClone(value, options) }.structuredClone);
hide(globalThis, 'queueMicrotask', function queueMicrotask(fn) {
  if (typeof fn !== 'function') {
    throw typeError('queueMicrotask takes a function, got ' + kindOf(fn));
  }
  subscribe(newResolved(), () => {
    try {
      apply(fn, undefined, []);
    } catch (e) {
      reportLate(e);
    }
  });
});

// Polyfills of what the engine lacks or has wrong.

// An iterator helper that is closed early calls return of the iterator below it
// without looking whether it has one; so all get one that does nothing.
{
  const IteratorPrototype = getPrototypeOf(getPrototypeOf([][NativeSymbol.iterator]()));
  hide(IteratorPrototype, 'return', {
    return(value) {
      return { value, done: true };
    },
  }.return);
}

if (typeof NativeError.captureStackTrace !== 'function') {
  hide(NativeError, 'captureStackTrace', function captureStackTrace(target) {
    hide(target, 'stack', textOf(new NativeError(), 'stack'));
  });
}

if (typeof Array.fromAsync !== 'function') {
  hide(Array, 'fromAsync', async function fromAsync(items, map, self) {
    if (map !== undefined && typeof map !== 'function') {
      throw typeError('Array.fromAsync: the second argument must be a function, got ' + kindOf(map));
    }
    const all = typeof this === 'function' ? new this() : [];
    let n = 0;
    const take = async (v) => {
      const value = map === undefined ? v : await apply(map, self, [v, n]);
      show(all, n++, value);
    };
    if (items[NativeSymbol.asyncIterator] != null || items[NativeSymbol.iterator] != null) {
      for await (const v of items) {
        await take(v);
      }
    } else {
      for (let length = items.length; n < length; ) {
        await take(await items[n]);
      }
    }
    all.length = n;
    return all;
  });
}
