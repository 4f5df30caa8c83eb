// A part: the timer verbs of the façade: effects of the run, so they end with it.

const {
  NativeError, NativePromise, NativeRangeError, NativeSymbol, absentError, active, addFunction, apply,
  askAsync, cut, enlist, finish, getOwnPropertyDescriptor, handles, hide, isFiniteNumber, kindOf, now, own,
  quote, typeError, told,
} = core;

const MAX_DELAY = 2147483647;

const checkDelay = (verb, ms) => {
  if (typeof ms !== 'number' || !isFiniteNumber(ms) || ms < 0) {
    throw typeError('ctx.' + verb + ': ms must be a finite number ≥ 0, got ' + kindOf(ms));
  }
  if (ms > MAX_DELAY) {
    throw new NativeRangeError('ctx.' + verb + ': ms must be at most ' + MAX_DELAY + ' (24.8 days)');
  }
  return ms;
};

const checkCallback = (verb, fn) => {
  if (typeof fn !== 'function') {
    throw typeError('ctx.' + verb + '(fn, ms) takes a function first, got ' + kindOf(fn) + ": ctx." + verb + '(() => { … }, 1000)');
  }
};

const needTimer = (run, verb) => {
  active(run);
  if (!run.bindings.has('timer')) {
    throw new NativeError('ctx.' + verb + told(" needs the timer service, which is not injected. Declare it: inject: ['timer'] on your plugin, so cordis parks this temporary Plugin if the provider is later unmounted."));
  }
  if (run.bindings.get('timer').json === null) {
    throw absentError('timer');
  }
};

const startTimer = (run, kind, fn, ms, label) => {
  const entry = addFunction(run, 'callback', fn, kind === 'timeout');
  return enlist(entry, 'timer', '{"kind":"' + kind + '","ms":' + ms + ',"fn":' + entry.id + ',"label":' + quote(label) + '}');
};

const named = (verb, fn) => {
  const d = getOwnPropertyDescriptor(fn, 'name');
  const name = d === undefined ? '' : own(d, 'value');
  return 'ctx.' + verb + '(' + (typeof name === 'string' ? cut(name, 60) : '') + ')';
};

// ticks is interval(ms): an async iterator. A tick that nobody waits for is lost.
const ticks = (run, ms) => {
  let wanted = null; // the next() that waits
  let over = false;
  let failure = null;
  const finish = (error) => {
    if (over) {
      return;
    }
    over = true;
    failure = error;
    run.ending.delete(finish);
    if (wanted !== null) {
      const w = wanted;
      wanted = null;
      error === null ? w.resolve({ value: undefined, done: true }) : w.reject(error);
    }
  };
  let count = 0;
  const off = startTimer(
    run,
    'interval',
    () => {
      count++;
      if (wanted !== null) {
        const w = wanted;
        wanted = null;
        w.resolve({ value: count, done: false });
      }
    },
    ms,
    'ctx.interval',
  );
  run.ending.add(finish);
  const iterator = {
    next() {
      if (over) {
        return new NativePromise((resolve, reject) => (failure === null ? resolve({ value: undefined, done: true }) : reject(failure)));
      }
      if (wanted !== null) {
        return new NativePromise((_, reject) => reject(new NativeError('ctx.interval(ms): next() was called while another next() waits')));
      }
      return new NativePromise((resolve, reject) => {
        wanted = { __proto__: null, resolve, reject };
      });
    },
    return(value) {
      finish(null);
      off();
      return new NativePromise((resolve) => resolve({ value, done: true }));
    },
    throw(error) {
      finish(error);
      off();
      return new NativePromise((_, reject) => reject(error));
    },
    [NativeSymbol.asyncIterator]() {
      return iterator;
    },
  };
  return iterator;
};

// throttle calls fn at once, then at most once in ms, the last call of a window
// with the newest arguments at its end.
const throttle = (run, fn, ms, noTrailing) => {
  let last = -1;
  let args = null;
  let off = null;
  let disposed = false;
  const fire = () => {
    off = null;
    if (args === null || disposed) {
      return undefined;
    }
    const a = args;
    args = null;
    last = now();
    return apply(fn, undefined, a);
  };
  const throttled = (...a) => {
    active(run);
    const left = last < 0 ? 0 : last + ms - now();
    if (left <= 0 && off === null) {
      last = now();
      return apply(fn, undefined, a);
    }
    if (!noTrailing && !disposed) {
      args = a;
      if (off === null) {
        off = startTimer(run, 'timeout', fire, left > 0 ? left : 0, named('throttle', fn));
      }
    }
  };
  hide(throttled, 'dispose', () => {
    disposed = true;
    args = null;
    if (off !== null) {
      off();
      off = null;
    }
  });
  return throttled;
};

// debounce calls fn once it has been left alone for ms. One timer runs at a
// time; it is set again for what is missing when calls came meanwhile.
const debounce = (run, fn, ms) => {
  let due = 0;
  let args = null;
  let off = null;
  let disposed = false;
  const fire = () => {
    off = null;
    if (args === null || disposed) {
      return undefined;
    }
    const left = due - now();
    if (left > 0) {
      arm(left);
      return undefined;
    }
    const a = args;
    args = null;
    return apply(fn, undefined, a);
  };
  const arm = (left) => {
    off = startTimer(run, 'timeout', fire, left, named('debounce', fn));
  };
  const debounced = (...a) => {
    active(run);
    if (disposed) {
      return;
    }
    args = a;
    due = now() + ms;
    if (off === null) {
      arm(ms);
    }
  };
  hide(debounced, 'dispose', () => {
    disposed = true;
    args = null;
    if (off !== null) {
      off();
      off = null;
    }
  });
  return debounced;
};

const clearTimer = (run, verb, handle) => {
  needTimer(run, verb);
  if (handle === undefined || handle === null) {
    return;
  }
  if (!handles.has(handle)) {
    throw typeError('ctx.' + verb + ' takes what ctx.setTimeout or ctx.setInterval returned (calling that does the same), got ' + kindOf(handle));
  }
  handle();
};

// withArgs is fn with the extra arguments of setTimeout(fn, ms, …args).
const withArgs = (fn, rest) => (rest.length === 0 ? fn : () => apply(fn, undefined, rest));

// makeTimerVerbs returns the verbs of a run, by name.
const makeTimerVerbs = (run) => ({
  __proto__: null,
  timeout(fn, ms) {
    needTimer(run, 'timeout');
    if (typeof fn === 'number' && ms === undefined) {
      return askAsync(run, 'sleep', '{"ms":' + checkDelay('timeout', fn) + '}');
    }
    checkCallback('timeout', fn);
    return startTimer(run, 'timeout', fn, checkDelay('timeout', ms), named('timeout', fn));
  },
  interval(fn, ms) {
    needTimer(run, 'interval');
    if (typeof fn === 'number' && ms === undefined) {
      return ticks(run, checkDelay('interval', fn));
    }
    checkCallback('interval', fn);
    return startTimer(run, 'interval', fn, checkDelay('interval', ms), named('interval', fn));
  },
  setTimeout(fn, ms = 0, ...rest) {
    needTimer(run, 'setTimeout');
    checkCallback('setTimeout', fn);
    return startTimer(run, 'timeout', withArgs(fn, rest), checkDelay('setTimeout', ms), named('setTimeout', fn));
  },
  setInterval(fn, ms, ...rest) {
    needTimer(run, 'setInterval');
    checkCallback('setInterval', fn);
    return startTimer(run, 'interval', withArgs(fn, rest), checkDelay('setInterval', ms), named('setInterval', fn));
  },
  clearTimeout: (handle) => clearTimer(run, 'clearTimeout', handle),
  clearInterval: (handle) => clearTimer(run, 'clearInterval', handle),
  throttle(fn, ms, noTrailing) {
    needTimer(run, 'throttle');
    checkCallback('throttle', fn);
    return throttle(run, fn, checkDelay('throttle', ms), !!noTrailing);
  },
  debounce(fn, ms) {
    needTimer(run, 'debounce');
    checkCallback('debounce', fn);
    return debounce(run, fn, checkDelay('debounce', ms));
  },
});

return { makeTimerVerbs };
