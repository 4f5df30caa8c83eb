// Errors across the boundary. A failure travels as the JSON text of
// { name?, message, code?, stack?, raw? }; raw says that what was thrown is no
// error and message its string form. Nothing that is thrown, however hostile,
// makes these functions throw.

// file: the plugin is a plugin file, not a temporary one. told makes a text fit that.
let file = false;
const TEMPORARY = 'temporary Plugin';
const told = (text) => {
  const i = file ? stringIndexOf(text, TEMPORARY) : -1;
  return i < 0 ? text : stringSlice(text, 0, i) + 'plugin' + told(stringSlice(text, i + TEMPORARY.length));
};

const UNPRINTABLE = '<unprintable thrown value>';
const MAX_MESSAGE = 100000;
const MAX_STACK = 16384;
const MAX_CAUSES = 5;

const isError = (v) => {
  try {
    return isErrorObject !== null && isErrorObject(v) ? true : isObject(v) && isPrototypeOf(ErrorPrototype, v);
  } catch {
    return false;
  }
};

// textOf reads one property once; anything but a string is ''.
const textOf = (v, k) => {
  try {
    const text = v[k];
    return typeof text === 'string' ? text : '';
  } catch {
    return '';
  }
};

// printed is the string form of a thrown value that is no error.
const printed = (v) => {
  try {
    switch (typeof v) {
      case 'symbol':
        return symbolText(v);
      case 'object':
      case 'function': {
        if (v === null) {
          return 'null';
        }
        const message = v.message;
        return typeof message === 'string' ? message : NativeString(v);
      }
    }
    return NativeString(v);
  } catch {
    return UNPRINTABLE;
  }
};

// oneLine is how a cause is named at the end of a stack.
const oneLine = (v) => {
  const name = isError(v) ? textOf(v, 'name') || 'Error' : '';
  const message = isError(v) ? textOf(v, 'message') : printed(v);
  let line = '';
  const text = cut((name === '' ? '' : name + ': ') + message, 500);
  for (let i = 0; i < text.length; i++) {
    const c = charCodeAt(text, i);
    line += c < 32 ? ' ' : text[i];
  }
  return line;
};

// causes lists cause chains and the errors of an AggregateError, one a line.
const causes = (e) => {
  let lines = '';
  try {
    let at = e;
    for (let i = 0; i < MAX_CAUSES && isError(at) && hasOwn(at, 'cause'); i++) {
      at = at.cause;
      lines += '\ncause: ' + oneLine(at);
    }
    const all = own(e, 'errors');
    if (isArray(all)) {
      const n = all.length;
      for (let i = 0; i < n && i < MAX_CAUSES; i++) {
        lines += '\ncause: ' + oneLine(all[i]);
      }
      if (n > MAX_CAUSES) {
        lines += '\ncause: and ' + (n - MAX_CAUSES) + ' more';
      }
    }
  } catch {
    // A hostile cause is not shown.
  }
  return lines;
};

// describeError gives the failure's JSON text.
const describeError = (e) => {
  if (!isError(e)) {
    return '{"message":' + quote(cut(printed(e), MAX_MESSAGE)) + ',"raw":true}';
  }
  const code = textOf(e, 'code');
  let stack = cut(textOf(e, 'stack'), MAX_STACK) + causes(e);
  let text = '{"name":' + quote(cut(textOf(e, 'name') || 'Error', 200)) + ',"message":' + quote(cut(textOf(e, 'message'), MAX_MESSAGE));
  if (code !== '') {
    text += ',"code":' + quote(cut(code, 200));
  }
  if (stack !== '') {
    text += ',"stack":' + quote(stack);
  }
  return text + '}';
};

const failed = (e) => '!' + describeError(e);

// messageOf is the text of any thrown value.
const messageOf = (e) => (isError(e) ? textOf(e, 'message') : printed(e));

// rebuild makes this machine's own error of a failure's text. What was thrown
// elsewhere as a string is thrown as one here.
const rebuild = (text) => {
  const f = parseJSON(text);
  const message = own(f, 'message');
  if (own(f, 'raw') === true) {
    return typeof message === 'string' ? message : UNPRINTABLE;
  }
  const name = own(f, 'name');
  const known = typeof name === 'string' && name !== 'AggregateError' ? errors[name] : undefined;
  const e = new (known || NativeError)(typeof message === 'string' ? message : '');
  if (known === undefined && typeof name === 'string' && name !== 'Error') {
    hide(e, 'name', name);
  }
  const code = own(f, 'code');
  if (typeof code === 'string') {
    show(e, 'code', code);
  }
  return e;
};

// typeError and codedError make errors of ours.
const typeError = (message) => new NativeTypeError(message);
const codedError = (message, code) => {
  const e = new NativeError(message);
  show(e, 'code', code);
  return e;
};

const abortError = (message) => {
  const e = codedError(message, 'ABORT_ERR');
  hide(e, 'name', 'AbortError');
  return e;
};

// reportLate makes an error of a listener an unhandled rejection, which is how
// errors that no call carries are seen.
const reportLate = (e) => {
  new NativePromise((_, reject) => reject(e));
};

// kindOf names a value in a message: "undefined", "a string", "an array" …
const kindOf = (v) => {
  if (v === null) {
    return 'null';
  }
  switch (typeof v) {
    case 'undefined':
      return 'undefined';
    case 'function':
      return 'a function';
    case 'object':
      return isArray(v) ? 'an array' : 'an object';
    case 'boolean':
      return '' + v;
    case 'number':
      return 'the number ' + v;
    case 'string':
      return 'the string ' + quoteName(v, 60);
  }
  return 'a ' + typeof v;
};
