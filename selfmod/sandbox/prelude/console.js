// The console: a line to the worker per call.

// What is printed by a name instead of its members: the façade, peers' objects.
const labels = newWeakMap();

const write = (level, args) => {
  let text;
  try {
    text = args.length === 1 && typeof args[0] === 'string' && args[0].length < 2000 ? args[0] : parts('inspect').formatLine(args);
  } catch {
    text = '[unprintable]';
  }
  host('console', level, text);
};

// makeConsole returns the object that is the global and the body's argument.
const makeConsole = () => {
  const c = {};
  for (let levels = ['log', 'info', 'warn', 'error', 'debug'], i = 0; i < levels.length; i++) {
    const level = levels[i];
    show(c, level, (...args) => write(level, args));
  }
  show(c, 'dir', (value) => write('log', [parts('inspect').inspect(value, LIMITS.consoleBytes)]));
  show(c, 'trace', (...args) => {
    write('error', [cut('Trace: ' + parts('inspect').formatLine(args), 2000) + '\n' + textOf(new NativeError(), 'stack')]);
  });
  show(c, 'assert', (ok, ...args) => {
    if (!ok) {
      write('error', [args.length === 0 ? 'Assertion failed' : 'Assertion failed: ' + parts('inspect').formatLine(args)]);
    }
  });
  return c;
};
