// A part: what to say when the façade is asked for what it does not have.

const {
  NativeError, injecting, list, name60, plugin, isFile, told,
} = core;

const AVAILABLE =
  'Available: ctx.tools.register / ctx.on / ctx.once / ctx.provide / ctx.effect / ctx.get / the timer helpers (ctx.setTimeout, ctx.interval, …) and any service you declared in inject.';
const INTERNALS = 'Framework internals (root, fiber, registry, extend, plugin, …) are withheld by design.';

const ONLY_YOURS = 'A temporary Plugin works through its own ctx and the services it injects.';
const NO_EMIT = 'A temporary Plugin cannot dispatch events: listen with ctx.on, and offer functions to other plugins with ctx.provide(name, value).';
const USE_PROVIDE = 'Use ctx.provide(name, value) to offer a service.';
// What to do instead of using a withheld member.
const instead = {
  __proto__: null,
  plugin: 'Mount a second plugin with cordis_mount.',
  inject: "Declare services on the plugin: return { name: '…', inject: ['…'], apply(ctx) { … } }.",
  emit: NO_EMIT,
  parallel: NO_EMIT,
  serial: NO_EMIT,
  bail: NO_EMIT,
  waterfall: NO_EMIT,
  events: 'Listen with ctx.on(event, fn).',
  off: 'ctx.on returns the function that removes the listener.',
  set: USE_PROVIDE,
  mixin: USE_PROVIDE,
  accessor: USE_PROVIDE,
  reflect: 'Read services with ctx.get(name); list what is live with cordis_inspect.',
  registry: 'List what is live with cordis_inspect.',
  logger: 'Use console.log, console.warn, console.error.',
  dispose: 'Unmount with cordis_unmount; undo single things with what ctx.on, ctx.provide and ctx.effect returned.',
  config: 'A temporary Plugin has no configuration: put values in its code.',
  sleep: "Use await ctx.timeout(ms), with inject: ['timer'].",
  root: ONLY_YOURS,
  parent: ONLY_YOURS,
  fiber: ONLY_YOURS,
  scope: ONLY_YOURS,
  runtime: ONLY_YOURS,
  extend: ONLY_YOURS,
  isolate: ONLY_YOURS,
  intercept: ONLY_YOURS,
};
// What fits a plugin file better.
const insteadInFile = {
  __proto__: null,
  plugin: 'A plugin file is one plugin: write a second file.',
  inject: "Declare services on the plugin: export const inject = ['…'].",
  dispose: 'A plugin file is ended by its row in cordis.yml, or with the file; undo single things with what ctx.on, ctx.provide and ctx.effect returned.',
  config: 'The configuration is the second argument: apply(ctx, config); export Config says what it takes.',
};
const insteadOfTools = {
  __proto__: null,
  guard: "Listen to 'tools/pre-execute' and return { kind: 'deny', reason }: ctx.on('tools/pre-execute', (exec, next) => exec.name === 'x' ? { kind: 'deny', reason: '…' } : next()).",
  restrict: "Listen to 'tools/pre-execute' and return { kind: 'deny', reason } for the tools that are not to run.",
  execute: 'A tool cannot call tools: put the shared work in a function, and offer it to other plugins with ctx.provide.',
  list: 'Use ctx.tools.schemas(), or ctx.tools.get(name).',
  unregister: 'ctx.tools.register returns the function that removes the tool.',
};
insteadOfTools.call = insteadOfTools.run = insteadOfTools.invoke = insteadOfTools.execute;

const notExposed = (name) => {
  const how = (isFile() && insteadInFile[name]) || instead[name];
  return new NativeError(told(
    'sandbox ctx does not expose ' + name60(name) + '. ' + AVAILABLE + ' ' + INTERNALS + ' ' +
      (how === undefined ? 'If ' + name60(name) + " is a service that is not running now, declare it (" + injecting(name) + "]) and cordis waits for it." : how),
  ));
};
const toolsNotExposed = (key) => {
  const how = insteadOfTools[key];
  return new NativeError('sandbox ctx.tools does not expose ' + name60(key) + '. Available: ctx.tools.register / ctx.tools.schemas / ctx.tools.get. ' + (how === undefined ? INTERNALS : how));
};

const isWithheld = (key) => instead[key] !== undefined;

return { notExposed, toolsNotExposed, isWithheld };
