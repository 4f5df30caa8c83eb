// A part: AbortController and AbortSignal, as far as exec.signal needs them: aborted,
// reason, throwIfAborted, onabort, listeners of "abort"; AbortSignal.abort and any.

const {
  NativeError, NativeSymbol, ObjectPrototype, abort, abortError, apply, create, isObject, list, reportLate,
  show, typeError, uncurry, told,
} = core;

let makeSignal;
let fire;
let watch;
let unwatch;
let isSignal;
let isAborted;
let reasonOf;

class AbortSignal {
  #aborted = false;
  #reason = undefined;
  #listeners = null;
  #onabort = null;
  #after = null;

  constructor(key) {
    if (key !== makeSignal) {
      throw typeError('use new AbortController().signal, or AbortSignal.abort(reason)');
    }
  }
  static {
    makeSignal = () => new AbortSignal(makeSignal);
    watch = (signal, fn) => {
      signal.#after ??= list();
      signal.#after[signal.#after.length] = fn;
    };
    unwatch = (signal, fn) => {
      const after = signal.#after;
      const kept = list();
      for (let i = 0; after !== null && i < after.length; i++) {
        if (after[i] !== fn) {
          kept[kept.length] = after[i];
        }
      }
      signal.#after = after === null ? null : kept;
    };
    isSignal = (v) => isObject(v) && #aborted in v;
    isAborted = (signal) => signal.#aborted;
    reasonOf = (signal) => signal.#reason;
    // fire aborts a signal once: it calls onabort and the listeners in order.
    fire = (signal, reason) => {
      if (signal.#aborted) {
        return;
      }
      signal.#aborted = true;
      signal.#reason = reason === undefined ? abortError('This operation was aborted') : reason;
      const event = create(ObjectPrototype);
      show(event, 'type', 'abort');
      show(event, 'target', signal);
      const listeners = signal.#listeners;
      const after = signal.#after;
      signal.#listeners = signal.#after = null;
      const call = (fn) => {
        try {
          if (typeof fn === 'function') {
            apply(fn, signal, [event]);
          } else if (isObject(fn)) {
            fn.handleEvent(event);
          }
        } catch (e) {
          reportLate(e);
        }
      };
      call(signal.#onabort);
      for (let i = 0; listeners !== null && i < listeners.length; i++) {
        call(listeners[i].fn);
      }
      for (let i = 0; after !== null && i < after.length; i++) {
        after[i](signal.#reason);
      }
    };
  }

  static abort(reason) {
    const signal = makeSignal();
    fire(signal, reason);
    return signal;
  }
  static any(signals) {
    const signal = makeSignal();
    for (const s of signals) {
      if (s.#aborted) {
        fire(signal, s.#reason);
      } else {
        watch(s, (reason) => fire(signal, reason));
      }
    }
    return signal;
  }
  static timeout() {
    throw new NativeError(told("AbortSignal.timeout is not available in the temporary Plugin sandbox — inject: ['timer'] on your plugin and abort an AbortController in ctx.setTimeout(() => controller.abort(), ms)"));
  }

  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }
  get onabort() {
    return this.#onabort;
  }
  set onabort(fn) {
    this.#onabort = isObject(fn) ? fn : null;
  }
  throwIfAborted() {
    if (this.#aborted) {
      throw this.#reason;
    }
  }
  addEventListener(type, fn, options) {
    if (type !== 'abort' || !isObject(fn) || this.#aborted) {
      return;
    }
    this.#listeners ??= list();
    const all = this.#listeners;
    for (let i = 0; i < all.length; i++) {
      if (all[i].fn === fn) {
        return;
      }
    }
    all[all.length] = { __proto__: null, fn };
    const inner = isObject(options) ? options.signal : undefined;
    if (isObject(inner) && #aborted in inner) {
      watch(inner, () => removeAbortListener(this, fn));
    }
  }
  removeEventListener(type, fn) {
    const all = this.#listeners;
    if (type !== 'abort' || all === null) {
      return;
    }
    const kept = list();
    for (let i = 0; i < all.length; i++) {
      if (all[i].fn !== fn) {
        kept[kept.length] = all[i];
      }
    }
    this.#listeners = kept;
  }
  dispatchEvent() {
    throw typeError('dispatchEvent is not available here; abort a signal with its AbortController');
  }
  get [NativeSymbol.toStringTag]() {
    return 'AbortSignal';
  }
}
const removeAbortListener = ((remove) => (signal, fn) => remove(signal, 'abort', fn))(uncurry(AbortSignal.prototype.removeEventListener));

class AbortController {
  #signal = makeSignal();
  get signal() {
    return this.#signal;
  }
  abort(reason) {
    fire(this.#signal, reason);
  }
  get [NativeSymbol.toStringTag]() {
    return 'AbortController';
  }
}

return { AbortController, AbortSignal, makeSignal, fire, watch, unwatch, isSignal, isAborted, reasonOf };
