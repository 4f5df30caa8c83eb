// A part: harness.defineTool, registering tools, and entering them.

const {
  LIMITS, MAX_MESSAGE, NativeError, NativeProxy, NativeRangeError, abortOf, active, addFunction, answer, apply, askSync,
  attempt, charCodeAt, create, cut, digits, enlist, facades, failed, finish, freeze, host, isArray, isData,
  isFiniteNumber, isObject, isProbe, isRecord, jsonOf, keysOf, kindOf, labels, list, losslessText, lossy, messageOf,
  nativeData, nativeText, nativeValue, newWeakMap, nothing, once, own, parseJSON, parts, phase, quote, quoteName, readArguments, readOnly, send, stringify,
  typeError, unchangeable, waitFor, waitsFor,
} = core;

// definitions: what defineTool returned → { name, execute, output, … }. The
// marker that cannot be forged.
const definitions = newWeakMap();

const toolError = (name, text) => typeError('harness.defineTool ' + (name === '' ? '' : quoteName(name, 64) + ' ') + text);

// specText is the JSON text of a schema written by the author.
const specText = (name, root, v) => {
  try {
    return nativeText(v) ?? (isData(v, nothing, 0) ? stringify(v, root) : parts('exact').exactText(v, root));
  } catch (e) {
    const l = lossy(e);
    if (l === undefined) {
      throw e;
    }
    const hint = l.hint === '' ? '' : '; ' + l.hint;
    switch (l.kind) {
      case 'circular':
        throw toolError(name, l.path + ' is circular');
      case 'deep':
        throw toolError(name, l.path + ' ' + l.what);
      case 'keys':
        throw toolError(name, l.path + ' must contain only own enumerable string keys (it ' + l.what + hint + ')');
    }
    throw toolError(name, l.path + ' must be lossless JSON data (it ' + l.what + hint + ')');
  }
};

const validName = (name) => {
  for (let i = 0; i < name.length; i++) {
    const c = charCodeAt(name, i);
    if (!((c >= 48 && c <= 57) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95 || c === 45)) {
      return false;
    }
  }
  return name.length >= 1 && name.length <= 64;
};

const optionalFunction = (name, what, f) => {
  if (f !== undefined && f !== null && typeof f !== 'function') {
    throw toolError(name, what + ' must be a function when present, got ' + kindOf(f));
  }
  return typeof f === 'function' ? f : undefined;
};

const EXAMPLE = " — e.g. output: { schema: { type: 'string' }, render(args, value) { return [{ type: 'text', text: value }] } }";

const checkHead = (options) => {
  const name = options.name;
  if (typeof name !== 'string') {
    throw toolError('', 'name must be a string, got ' + kindOf(name));
  }
  if (!validName(name)) {
    throw toolError(name, 'name must match ' + LIMITS.toolName);
  }
  const description = options.description;
  if (description !== undefined && typeof description !== 'string') {
    throw toolError(name, 'description must be a string, got ' + kindOf(description));
  }
  const title = options.title;
  if (title !== undefined && typeof title !== 'string') {
    throw toolError(name, 'title must be a string when present, got ' + kindOf(title));
  }
  const timeoutMs = options.timeoutMs;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && isFiniteNumber(timeoutMs) && timeoutMs > 0)) {
    throw toolError(name, 'timeoutMs must be a positive finite number, got ' + kindOf(timeoutMs));
  }
  return { __proto__: null, name, description: description === undefined ? '' : description, title, timeoutMs };
};

// defineTool checks in the order of the documentation, reads each property once,
// and lets the worker validate both schemas.
const defineTool = (options) => {
  if (!isRecord(options)) {
    throw toolError('', 'options must be an object { name, description, parameters, output, execute }, got ' + kindOf(options));
  }
  const d = checkHead(options);
  const name = d.name;
  const parameters = options.parameters;
  if (!isRecord(parameters)) {
    throw toolError(name, 'parameters must be a ParameterSchemaSpec object, got ' + kindOf(parameters) + ' (use parameters: {} for a tool without parameters)');
  }
  d.parameters = specText(name, 'parameters', parameters);
  const output = options.output;
  const schema = isRecord(output) ? output.schema : undefined;
  if (schema === undefined) {
    throw toolError(name, 'output must declare { schema, render, presentationMeta? }' + EXAMPLE);
  }
  d.output = output;
  d.render = output.render;
  if (typeof d.render !== 'function') {
    throw toolError(name, 'output.render must be a function' + EXAMPLE);
  }
  d.meta = optionalFunction(name, 'output.presentationMeta', output.presentationMeta);
  d.options = options;
  d.execute = options.execute;
  if (typeof d.execute !== 'function') {
    throw toolError(name, 'execute must be a function: async execute(args, exec) { return value }, got ' + kindOf(d.execute));
  }
  d.safe = optionalFunction(name, 'isConcurrencySafe', options.isConcurrencySafe);
  d.presentCall = optionalFunction(name, 'presentCall', options.presentCall);
  d.presentResult = optionalFunction(name, 'presentResult', options.presentResult);
  d.finalize = optionalFunction(name, 'finalizeContent', options.finalizeContent);
  d.schema = specText(name, 'output.schema', schema);
  answer(host('check', '{"name":' + quote(name) + ',"parameters":' + d.parameters + ',"output":' + d.schema + '}'));
  const tool = freeze({ name, description: d.description, parameters, output, execute: d.execute });
  definitions.set(tool, d);
  labels.set(tool, 'tool ' + quote(name));
  return tool;
};

const NOT_DEFINED = 'dynamic tool registration must use a tool returned by harness.defineTool(...)';

const registerIn = (run, tool) => {
  active(run);
  const d = isObject(tool) ? definitions.get(tool) : undefined;
  if (d === undefined) {
    throw typeError(NOT_DEFINED + ', got ' + kindOf(tool));
  }
  const entry = addFunction(run, 'tool', undefined, d);
  const has = (f) => (f === undefined ? 'false' : 'true');
  return enlist(
    entry,
    'tool',
    '{"fn":' + entry.id + ',"name":' + quote(d.name) + ',"description":' + quote(d.description) +
      (d.title === undefined ? '' : ',"title":' + quote(d.title)) +
      ',"parameters":' + d.parameters + ',"output":' + d.schema +
      (d.timeoutMs === undefined ? '' : ',"timeoutMs":' + d.timeoutMs) +
      ',"has":{"render":true,"meta":' + has(d.meta) + ',"finalize":' + has(d.finalize) + ',"safe":' + has(d.safe) +
      ',"presentCall":' + has(d.presentCall) + ',"presentResult":' + has(d.presentResult) + '}}',
  );
};

const registerTool = (ctx, tool) => {
  const run = isObject(ctx) ? facades.get(ctx) : undefined;
  if (run === undefined) {
    const swapped = isObject(ctx) && definitions.has(ctx) ? ' The tool comes second.' : '';
    throw typeError('harness.registerTool(ctx, tool): the first argument must be the ctx that apply(ctx) received, got ' + kindOf(ctx) + '.' + swapped);
  }
  return registerIn(run, tool);
};

// makeTools makes the ctx.tools of a run.
const makeTools = (run) => {
  const members = {
    __proto__: null,
    register: (tool) => registerIn(run, tool),
    schemas: () => {
      active(run);
      return askSync(run, 'schemas', '{}');
    },
    get: (name) => {
      active(run);
      if (typeof name !== 'string') {
        throw typeError('ctx.tools.get(name) takes a string, got ' + kindOf(name));
      }
      return askSync(run, 'get', '{"name":' + quote(name) + '}');
    },
  };
  const tools = new NativeProxy(create(null), {
    __proto__: null,
    get(_, key) {
      if (typeof key === 'symbol') {
        return undefined;
      }
      active(run);
      const m = members[key];
      if (m !== undefined || isProbe(key)) {
        return m;
      }
      throw parts('teach').toolsNotExposed(key);
    },
    has: (_, key) => key === 'register' || key === 'schemas' || key === 'get',
    set: readOnly('ctx.tools'),
    defineProperty: unchangeable('ctx.tools'),
    deleteProperty: unchangeable('ctx.tools'),
    setPrototypeOf: unchangeable('ctx.tools'),
    preventExtensions: unchangeable('ctx.tools'),
  });
  facades.set(tools, run);
  labels.set(tools, 'ctx.tools');
  return tools;
};

// exec is the second argument of execute.

const progressNumber = (k, v) => {
  if (v === undefined) {
    return '';
  }
  if (typeof v !== 'number' || !isFiniteNumber(v)) {
    throw typeError('exec.progress: ' + k + ' must be a finite number, got ' + kindOf(v));
  }
  return ',"' + k + '":' + v;
};

const sendProgress = (call, p) => {
  const report = typeof p === 'string' ? { __proto__: null, text: p } : p;
  if (!isRecord(report)) {
    throw typeError('exec.progress takes { text?, done?, total? }, got ' + kindOf(p));
  }
  const text = report.text;
  if (text !== undefined && typeof text !== 'string') {
    throw typeError('exec.progress: text must be a string, got ' + kindOf(text));
  }
  const done = progressNumber('done', report.done);
  const total = progressNumber('total', report.total);
  if (call.text === '~') {
    send(call.id, call.run, 'progress', '{"call":' + digits(call.id) + (text === undefined ? '' : ',"text":' + quote(cut(text, LIMITS.progress))) + done + total + '}');
  }
};

const deferContext = (call, message) => {
  let text;
  try {
    text = losslessText(message, 'message');
  } catch (e) {
    const l = lossy(e);
    throw l === undefined ? e : typeError('exec.deferContext: the message must be lossless JSON data: ' + e.message);
  }
  if (call.text === '~') {
    send(call.id, call.run, 'defer', '{"call":' + digits(call.id) + ',"message":' + text + '}');
  }
};

// Exec gives its functions by getters, so that they cost nothing until they are
// used and still work when they are taken out of it.
class Exec {
  #call;
  // Fields are there before they get a value, so no setter of a prototype is asked.
  callId;
  rootCallId;
  name;
  arguments;
  constructor(call, head, args) {
    this.#call = call;
    this.callId = head.callId;
    this.rootCallId = head.rootCallId;
    this.name = head.name;
    this.arguments = args;
    freeze(this);
  }
  get signal() {
    const a = abortOf(this.#call);
    if (a.signal === null) {
      a.signal = parts('abort').makeSignal();
      if (a.aborted) {
        parts('abort').fire(a.signal, a.reason);
      }
    }
    return a.signal;
  }
  get progress() {
    const call = this.#call;
    return (p) => sendProgress(call, p);
  }
  get deferContext() {
    const call = this.#call;
    return (message) => deferContext(call, message);
  }
  get concludeTurn() {
    const call = this.#call;
    return () => {
      if (call.text === '~') {
        send(call.id, call.run, 'conclude', '{"call":' + digits(call.id) + '}');
      }
    };
  }
}
freeze(Exec.prototype);
const makeExec = (call, head, args) =>
  new Exec(call, { callId: own(head, 'callId'), rootCallId: own(head, 'rootCallId'), name: own(head, 'name') }, args);

// Checks of what the members return.

const MAX_RESULT = LIMITS.result;

const resultTooLarge = (n) =>
  new NativeRangeError('harness.defineTool execute result is ' + n + ' bytes of JSON; the limit is ' + LIMITS.result + '. Return a part, or a summary and where the rest is.');

const resultText = (v) => {
  if (typeof v === 'string' && v.length > MAX_RESULT) {
    throw resultTooLarge(v.length + 2); // before a second copy of it takes the memory
  }
  let text = nativeText(v);
  if (text !== undefined && text.length <= MAX_RESULT) {
    return text;
  }
  try {
    text = losslessText(v, 'value');
  } catch (e) {
    const l = lossy(e);
    if (l === undefined) {
      throw e;
    }
    const where = l.path === 'value' ? 'it ' + l.what : messageOf(e);
    const hint = v === undefined ? 'did execute forget to return?' : l.hint;
    throw typeError('harness.defineTool execute result must be lossless JSON data: ' + where + (hint === '' ? '' : ' — ' + hint));
  }
  if (text.length > MAX_RESULT) {
    throw resultTooLarge(text.length);
  }
  return text;
};

// preview is compact JSON cut at LIMITS.preview.
const preview = (v) => {
  if (v === undefined) {
    return 'undefined';
  }
  let text;
  try {
    text = losslessText(v, 'value');
  } catch {
    text = typeof v === 'object' ? parts('inspect').inspect(v, LIMITS.preview) : kindOf(v);
  }
  return cut(text, LIMITS.preview);
};

const contentText = (what, v) => {
  let ok = isArray(v);
  const n = ok ? v.length : 0;
  for (let i = 0; ok && i < n; i++) {
    const b = v[i];
    ok = typeof b === 'object' && b !== null && !isArray(b) && typeof b.type === 'string';
  }
  const text = ok ? nativeText(v) : undefined;
  if (text !== undefined && text.length <= MAX_RESULT) {
    return text;
  }
  if (!ok) {
    throw typeError(what + ' returned ' + preview(v) + " — it must return an ARRAY of content blocks:\n  ✓ return [{ type: 'text', text: String(value) }]");
  }
  return jsonOf(what + ' result', v);
};

// enterTool runs execute, then render, then presentationMeta, each an entry of
// its own; the failures of the last two travel beside the value. What is there at
// once goes on without a closure or a job.
const enterTool = (call, d, json) => {
  const a = readFrozen(json);
  const head = a.exec; // the host gives it, args, and all four members
  const args = a.args;
  const nested = head.nested;
  let v;
  let how;
  try {
    v = nativeValue(apply(d.execute, d.options, [args, new Exec(call, head, args)]));
    how = waitsFor(v);
  } catch (e) {
    return finish(call, failed(e));
  }
  if (how === null) {
    return executed(call, d, args, nested, v);
  }
  waitFor(v, how, (value) => executed(call, d, args, nested, value), (e) => finish(call, failed(e)));
};

const executed = (call, d, args, nested, v) => {
  let text;
  let copy = v;
  try {
    text = resultText(v);
    if (typeof v === 'object' && v !== null) {
      copy = frozen(text);
    }
  } catch (e) {
    return finish(call, failed(e));
  }
  text = '={"value":' + text;
  const meta = d.meta === undefined || nested === true ? null : () => apply(d.meta, d.output, [args, copy]);
  host('phase', call.id, 'render');
  let content;
  let how;
  try {
    content = nativeValue(apply(d.render, d.output, [args, copy]));
    how = waitsFor(content);
  } catch (e) {
    return unrendered(call, text, meta, e);
  }
  if (how === null) {
    return rendered(call, text, meta, content);
  }
  waitFor(content, how, (value) => rendered(call, text, meta, value), (e) => unrendered(call, text, meta, e));
};

const rendered = (call, text, meta, content) => {
  let more;
  try {
    more = contentText('output.render', content);
  } catch (e) {
    return unrendered(call, text, meta, e);
  }
  meta === null ? finish(call, text + ',"content":' + more + '}') : project(call, text + ',"content":' + more, meta);
};

const unrendered = (call, text, meta, e) => project(call, text + ',"contentError":' + quote(cut(messageOf(e), MAX_MESSAGE)), meta);

const project = (call, text, meta) => {
  if (meta === null) {
    return finish(call, text + '}');
  }
  phase(call, 'presentationMeta');
  attempt(
    meta,
    (v) => finish(call, text + (v === undefined ? '' : ',"meta":' + jsonOf('output.presentationMeta result', v)) + '}'),
    (e) => finish(call, text + ',"metaError":' + quote(cut(messageOf(e), MAX_MESSAGE)) + '}'),
  );
};

// members: the other kinds of entry into a tool; their arguments are frozen.
const toolMembers = {
  __proto__: null,
  render: (call, d, a) =>
    once(call, () => apply(d.render, d.output, [own(a, 'args'), own(a, 'value')]), (v) => contentText('output.render', v)),
  meta: (call, d, a) =>
    once(call, () => (d.meta === undefined ? undefined : apply(d.meta, d.output, [own(a, 'args'), own(a, 'value')])), (v) =>
      v === undefined ? '' : jsonOf('output.presentationMeta result', v),
    ),
  finalize: (call, d, a) =>
    once(
      call,
      () => (d.finalize === undefined ? undefined : apply(d.finalize, d.options, [makeExec(call, own(a, 'exec'), own(own(a, 'exec'), 'arguments')), own(a, 'result')])),
      (v) => (v === undefined ? '' : contentText('finalizeContent', v)),
    ),
  safe: (call, d, a) =>
    finish(call, (d.safe === undefined ? undefined : apply(d.safe, d.options, [own(a, 'args')])) === true ? '=true' : '=false'),
  presentCall: (call, d, a) =>
    once(call, () => (d.presentCall === undefined ? undefined : apply(d.presentCall, d.options, [own(a, 'args')])), (v) => cardText('presentCall', v)),
  presentResult: (call, d, a) =>
    once(
      call,
      () => (d.presentResult === undefined ? undefined : apply(d.presentResult, d.options, [own(a, 'args'), own(a, 'result')])),
      (v) => cardText('presentResult', v),
    ),
};

const enterMember = (call, kind, d, json) => {
  const member = toolMembers[kind];
  if (member === undefined) {
    throw new NativeError('an entry of unknown kind ' + quote(kind));
  }
  return member(call, d, readFrozen(json));
};

const cardText = (what, v) => (v === undefined || v === null ? '' : jsonOf(what + ' result', v));

// frozen is the deeply frozen value of a JSON text.
const frozen = (json) => {
  const v = nativeData(json);
  return v === undefined ? freezeDeep(parseJSON(json)) : v;
};

const readFrozen = (json) => {
  const v = nativeData(json);
  return v === undefined ? freezeDeep(readArguments(json)) : v;
};

// freezeDeep freezes what came out of parseJSON.
const freezeDeep = (v) => {
  const stack = list();
  stack[0] = v;
  while (stack.length > 0) {
    const o = stack[stack.length - 1];
    stack.length--;
    if (typeof o !== 'object' || o === null) {
      continue;
    }
    freeze(o);
    const keys = keysOf(o);
    for (let i = 0; i < keys.length; i++) {
      stack[stack.length] = o[keys[i]];
    }
  }
  return v;
};

return { defineTool, registerTool, enterTool, enterMember, makeTools };
