// A part: the plugin that an ES module exports. What it exports by name wins over the
// members of its default export; a function as the default is apply.

const {
  isClass, isNativePromise, isObject, keysOf, kindOf, losslessText, lossy, messageOf, notPlugin, quote, readInject,
} = core;

const FILE_FORMS =
  '\n  ✓ export default { name: \'…\', inject: […], apply(ctx, config) { … } }' +
  '\n  ✓ export default (ctx, config) => { … }' +
  '\n  ✓ export const inject = […]; export function apply(ctx, config) { … }';

const configText = (config) => {
  if (config === undefined || config === null) {
    return '';
  }
  if (!isObject(config) || typeof config === 'function') {
    throw notPlugin("Config says what configuration the plugin takes: a map of property names to nodes as in a tool's parameters, e.g. { limit: { type: 'integer', default: 10 } }; got " + kindOf(config));
  }
  try {
    return ',"config":' + quote(losslessText(config, 'Config'));
  } catch (e) {
    throw lossy(e) === undefined ? e : notPlugin("Config must be lossless JSON data, nodes as in a tool's parameters: " + messageOf(e));
  }
};

const missing = (exported, main) => {
  const names = keysOf(exported);
  if (names.length === 0) {
    return 'the plugin file exports nothing. It must export a plugin:' + FILE_FORMS;
  }
  let list = '';
  for (let i = 0; i < names.length && i < 10; i++) {
    list += (i === 0 ? '' : ', ') + names[i];
  }
  return 'the plugin file must export a plugin: apply, or a default that is a function or an object with an apply method. It exports ' +
    list + (names.length > 10 ? ', …' : '') + (main === undefined ? '' : ' (default is ' + kindOf(main) + ')') + '. The forms:' + FILE_FORMS;
};

// classifyModule makes the plugin of what a module exports; each export is read once.
const classifyModule = (exported) => {
  const main = exported.default;
  const whole = isObject(main) && typeof main !== 'function' ? main : undefined;
  if (whole !== undefined && isNativePromise(whole)) {
    throw notPlugin('the default export is a promise: write `export default await …`, or export the plugin itself:' + FILE_FORMS);
  }
  if (main !== undefined && whole === undefined && typeof main !== 'function') {
    throw notPlugin(missing(exported, main));
  }
  const member = (name) => {
    const v = exported[name];
    return v !== undefined || main === undefined ? v : main[name];
  };
  let start = exported.apply;
  let value;
  if (start === undefined && whole !== undefined) {
    start = whole.apply;
    value = whole;
  } else if (start === undefined && main !== undefined) {
    if (isClass(main)) {
      throw notPlugin('the default export is a class. Export its instance, or a function that makes one:\n  ✓ export default (ctx, config) => { new MyClass(ctx) }');
    }
    start = main;
  }
  if (typeof start !== 'function') {
    throw notPlugin(missing(exported, main));
  }
  let name = exported.name;
  if (name === undefined && main !== undefined) {
    name = main.name;
    if (typeof main === 'function' && name === 'default') {
      name = ''; // what the language calls a function that has no name
    }
  }
  return {
    __proto__: null, value, apply: start, name: typeof name === 'string' ? name : '', inject: readInject(member('inject')),
    config: configText(member('Config')),
  };
};

return { classifyModule };
