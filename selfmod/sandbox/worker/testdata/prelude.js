// A stand-in for the real prelude: the same dispatcher, a bare API for tests.
//   host.sync(verb, value) · host.async(verb, value) · host.send(verb, value)
//   host.fn(id, f)       f(args, signal) is what invoke enters
//   host.export(key, f)  f(...a) is what peer enters
//   host.peer(mount, key, ...a) · host.phase(name) · host.raw(op, ...texts)
(function (native, hold) {
  'use strict';
  delete globalThis.__host;
  delete globalThis.__hold;
  const fns = new Map();
  const exported = new Map();
  const waiting = new Map();
  const aborts = new Map();
  const dropped = [];
  let plugin, current = '', run = 0, promises = 0;

  const ok = (v) => '=' + (v === undefined ? '' : JSON.stringify(v));
  const bad = (e) => {
    if (e instanceof Error) {
      return '!' + JSON.stringify({ name: e.name, message: e.message, code: e.code, stack: e.stack });
    }
    return '!' + JSON.stringify({ message: String(e), raw: true });
  };
  const read = (text) => {
    if (text === undefined || text === '=') return undefined;
    if (text[0] === '!') {
      const f = JSON.parse(text.slice(1));
      throw Object.assign(new Error(f.message), { name: f.name || 'Error', code: f.code });
    }
    return JSON.parse(text.slice(1));
  };
  const answer = (id, f, map) => {
    const before = current;
    current = id;
    try {
      const v = f();
      if (v && typeof v.then === 'function') {
        v.then((v) => native('done', id, ok(map(v))), (e) => native('done', id, bad(e)));
        return '~';
      }
      return ok(map(v));
    } catch (e) {
      return bad(e);
    } finally {
      current = before;
    }
  };
  const wait = (id) => new Promise((resolve, reject) => waiting.set(id, [resolve, reject]));
  const ask = (op, verb, v) => native(op, current, String(run), verb, JSON.stringify(v === undefined ? null : v));

  globalThis.host = {
    sync: (verb, v) => read(ask('sync', verb, v)),
    async: (verb, v) => wait(ask('async', verb, v)),
    send: (verb, v) => ask('send', verb, v),
    fn: (id, f) => void fns.set(String(id), f),
    export: (key, f) => void exported.set(key, f),
    peer: (mount, k, ...a) => {
      const text = native('peer', String(mount), JSON.stringify({ run, k, a }));
      return text[0] === '~' ? wait(text.slice(1)) : read(text);
    },
    phase: (name) => native('phase', current, name),
    check: (v) => read(native('check', JSON.stringify(v))),
    raw: native,
    dropped,
    about: undefined,
  };
  globalThis.console = { log: (text) => native('console', 'log', String(text)) };

  const ops = {
    load: (id, fn, mount) => {
      host.about = { mount: +mount };
      return answer(id, fn, (p) => {
        plugin = p || {};
        return { name: plugin.name || '', inject: [] };
      });
    },
    apply: (id, r, bindings) => {
      run = +r;
      return answer(id, () => plugin.apply && plugin.apply(JSON.parse(bindings)), () => undefined);
    },
    invoke: (id, kind, fn, args) => {
      const signal = { aborted: false, listeners: [] };
      aborts.set(id, signal);
      return answer(id, () => fns.get(fn)(JSON.parse(args), signal, kind), (v) => v);
    },
    settle: (id, text) => {
      const w = waiting.get(id);
      if (!w) return;
      waiting.delete(id);
      try { w[0](read(text)); } catch (e) { w[1](e); }
    },
    abort: (id, reason) => {
      const signal = aborts.get(id);
      signal.aborted = true;
      for (const f of signal.listeners) f(reason);
    },
    bind: (r, name, binding) => { host.bound = [r, name, binding]; },
    retire: (r) => { host.retired = r; if (plugin.retire) plugin.retire(); },
    peer: (caller, request) => {
      const q = JSON.parse(request);
      host.caller = caller;
      try {
        const v = exported.get(q.k)(...q.a);
        if (v && typeof v.then === 'function') {
          const id = String(++promises);
          v.then((v) => native('peerdone', id, ok(v)), (e) => native('peerdone', id, bad(e)));
          return '~' + id;
        }
        return ok(v);
      } catch (e) {
        return bad(e);
      }
    },
    drop: (caller) => { dropped.push(caller); },
  };
  hold((op, ...args) => ops[op](...args));
})(__host, __hold);
