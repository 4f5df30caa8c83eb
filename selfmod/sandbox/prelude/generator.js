// A part: effects that are more than one function: ctx.effect, and generators of
// disposers.

const {
  NativeError, NativePromise, active, addFunction, apply, current, cut, dropFunction, enlist,
  getOwnPropertyDescriptor, hide, isObject, kindOf, list, messageOf, newHandle, nothing, own, promiseThen,
  quote, send, settled, typeError,
} = core;

const INVALID_EFFECT = (what, v) =>
  typeError(
    'Invalid effect: ' + what + ' ' + kindOf(v) + '. Allowed: a function that undoes it, a promise of one, a (possibly async) generator that yields such functions, or nothing.',
  );

// gatherSteps collects the disposers in what a setup returned: take is called
// with each in order, then done() or done(failure) once, at once if nothing is
// async. Between steps of a generator stopped() is asked.
const gatherSteps = (what, v, take, stopped, done) => {
  const accept = (d, verb) => {
    if (d === undefined || d === null) {
      return;
    }
    if (typeof d !== 'function') {
      throw INVALID_EFFECT(what + ' ' + verb, d);
    }
    take(d);
  };
  const step = (iterator, next) => {
    for (;;) {
      if (stopped()) {
        return done();
      }
      let wait = false;
      let finished = false;
      let failure = null;
      const use = (r) => {
        try {
          if (!isObject(r)) {
            throw INVALID_EFFECT(what + ' gave an iterator whose next() gave', r);
          }
          finished = !!r.done;
          accept(r.value, finished ? 'returned' : 'yielded');
        } catch (e) {
          failure = { __proto__: null, e };
        }
        if (wait) {
          failure !== null ? done(failure) : finished ? done() : step(iterator, next);
        }
      };
      try {
        wait = settled(apply(next, iterator, []), use, (e) => {
          failure = { __proto__: null, e };
          if (wait) {
            done(failure);
          }
        });
      } catch (e) {
        return done({ __proto__: null, e });
      }
      if (wait) {
        return;
      }
      if (failure !== null) {
        return done(failure);
      }
      if (finished) {
        return done();
      }
    }
  };
  const value = (r) => {
    try {
      if (!isObject(r) || typeof r === 'function') {
        accept(r, 'returned');
        return done();
      }
      const next = r.next;
      if (typeof next !== 'function') {
        throw INVALID_EFFECT(what + ' returned', r);
      }
      return step(r, next);
    } catch (e) {
      return done({ __proto__: null, e });
    }
  };
  if (typeof v === 'function') {
    return value(v);
  }
  settled(v, value, (e) => done({ __proto__: null, e }));
};

// undoAll runs disposers in reverse, one after the other, all of them; done gets
// the failure, or nothing.
const undoAll = (disposers, done) => {
  const failures = list();
  const next = () => {
    for (;;) {
      if (disposers.length === 0) {
        return done(failures.length === 0 ? undefined : { __proto__: null, e: joined(failures) });
      }
      const d = disposers[disposers.length - 1];
      disposers.length--;
      let wait = false;
      const ok = () => {
        if (wait) {
          next();
        }
      };
      const bad = (e) => {
        failures[failures.length] = e;
        ok();
      };
      try {
        wait = settled(apply(d, undefined, []), ok, bad);
      } catch (e) {
        failures[failures.length] = e;
      }
      if (wait) {
        return;
      }
    }
  };
  next();
};

const joined = (failures) => {
  if (failures.length === 1) {
    return failures[0];
  }
  let text = '';
  for (let i = 0; i < failures.length; i++) {
    text += (i === 0 ? '' : '; ') + messageOf(failures[i]);
  }
  return new NativeError(failures.length + ' disposers failed: ' + text);
};

// addEffect is ctx.effect: it runs setup and registers one effect that undoes
// all that setup collected.
const addEffect = (run, setup, label) => {
  active(run);
  if (typeof setup !== 'function') {
    throw typeError('ctx.effect(setup) takes a function that sets something up and returns the function that undoes it, got ' + kindOf(setup));
  }
  if (label !== undefined && typeof label !== 'string') {
    throw typeError('ctx.effect(setup, label): the label is a string, got ' + kindOf(label));
  }
  const state = { __proto__: null, disposers: list(), ready: false, failure: undefined, stop: false, waiters: list() };
  const whenReady = (fn) => {
    if (state.ready) {
      fn();
    } else {
      state.waiters[state.waiters.length] = fn;
    }
  };
  gatherSteps(
    'the setup of ctx.effect',
    apply(setup, undefined, []),
    (d) => {
      state.disposers[state.disposers.length] = d;
    },
    () => state.stop || run.ended,
    (failure) => {
      state.ready = true;
      state.failure = failure;
      for (let i = 0; i < state.waiters.length; i++) {
        state.waiters[i]();
      }
    },
  );
  if (state.ready && state.failure !== undefined) {
    undoAll(state.disposers, nothing);
    throw state.failure.e;
  }
  // What the host enters: undo once setup is through, and stop a generator.
  const dispose = () => {
    state.stop = true;
    return new NativePromise((resolve, reject) => {
      whenReady(() => undoAll(state.disposers, (failure) => (failure === undefined ? resolve() : reject(failure.e))));
    });
  };
  const name = label === undefined ? own(getOwnPropertyDescriptor(setup, 'name') || { __proto__: null }, 'value') : label;
  let off;
  const entry = addFunction(run, 'dispose', dispose);
  try {
    off = enlist(entry, 'effect', '{"label":' + quote(typeof name === 'string' && name !== '' ? cut(name, 80) : 'anonymous') + ',"fn":' + entry.id + '}');
  } catch (e) {
    state.stop = true;
    whenReady(() => undoAll(state.disposers, nothing));
    throw e;
  }
  if (!state.ready) {
    awaitable(off, entry, state, whenReady);
  }
  return off;
};

// awaitable lets the handle of an effect that is still being set up be awaited:
// it gives the disposer, or the error of setup. Nobody waiting, the error is an
// unhandled rejection.
const awaitable = (off, entry, state, whenReady) => {
  const plain = newHandle(entry);
  const ready = new NativePromise((resolve, reject) => {
    whenReady(() => {
      if (state.failure === undefined) {
        return resolve(plain);
      }
      undoAll(state.disposers, nothing);
      if (!entry.gone && !entry.run.ended && entry.off === null) {
        dropFunction(entry);
        send(current, entry.run, 'gone', '{"effect":' + entry.effect + '}');
      }
      reject(state.failure.e);
    });
  });
  hide(off, 'then', (ok, bad) => promiseThen(ready, ok, bad));
};

return { gatherSteps, addEffect };
