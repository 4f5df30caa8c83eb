// Types for writing a plugin of dsh in an editor. Put this file beside the plugin,
// with a tsconfig.json that leaves out the libraries of browsers and Node, whose
// names differ from what a plugin has:
//
//   { "compilerOptions": { "noEmit": true, "strict": true, "target": "es2024", "lib": ["es2024"], "types": [] } }
//
// A plugin is
//
//   const plugin: dsh.Plugin = { name: 'x', inject: ['fs'], apply(ctx) { … } };
//
// and cordis_mount takes the same with `return` in place of the declaration. Every
// service is a member of ctx here; at run time only those are that inject names.

declare namespace dsh {
  /** A function that takes back what the call that gave it has done. */
  type Disposer = () => Promise<void>;

  /** What may happen at unmount: nothing, a function, or several from a generator. */
  type Cleanup = void | null | (() => unknown) | Promise<void | null | (() => unknown)> | Iterator<() => unknown> | AsyncIterator<() => unknown>;

  /** A plugin: an object with apply, or apply itself. */
  type Plugin = PluginObject | ((ctx: Context) => Cleanup);

  interface PluginObject {
    /** Its name in reports. */
    name?: string;
    /** The services that it needs. Without one of the required it is pending. */
    inject?: ServiceName | ServiceName[] | Record<string, unknown> | { required?: ServiceName[]; optional?: ServiceName[] };
    /** Runs when all required services are there, and again after one has returned. */
    apply(ctx: Context): Cleanup;
  }

  /** The name of a service of the harness, or of one that a plugin provides. */
  type ServiceName = keyof Services | (string & {});

  /** A node of a schema, or a JSON Schema { type: 'object', properties, required }. */
  interface SchemaNode {
    type?: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object' | 'json';
    /** true: the property has to be there; or the names of those that have. */
    required?: boolean | string[];
    description?: string;
    title?: string;
    /** Filled in where the argument is absent. */
    default?: any;
    examples?: any[];
    enum?: (string | number | boolean | null)[];
    const?: string | number | boolean | null;
    items?: SchemaNode;
    properties?: Record<string, SchemaNode>;
    /** Absent: true. */
    additionalProperties?: boolean;
    oneOf?: SchemaNode[];
  }

  /** What harness.defineTool takes. */
  interface ToolOptions<A = any, V = any> {
    /** ^[a-zA-Z0-9_-]{1,64}$ */
    name: string;
    /** Tells the model what the tool does. */
    description: string;
    title?: string;
    /** A map of property names to nodes, or a JSON Schema of an object. */
    parameters: Record<string, SchemaNode> | SchemaNode;
    output: {
      /** What execute returns. */
      schema: SchemaNode;
      /** What the model reads. */
      render(args: A, value: V): ContentBlock[];
      /** What people's views read. */
      presentationMeta?(args: A, value: V): any;
    };
    /** Returns the value that output.schema describes, as plain JSON data. */
    execute(args: A, exec: Exec): V | Promise<V>;
    /** The tool's own limit of time. */
    timeoutMs?: number;
    /** true: it may run beside other calls. */
    isConcurrencySafe?(args: A): boolean;
    presentCall?(args: A): any;
    presentResult?(args: A, result: ToolResult): any;
    /** The last change of the content. undefined: it stays. */
    finalizeContent?(exec: Exec, result: ToolResult): ContentBlock[] | undefined;
  }

  /** What harness.defineTool returns. */
  interface DefinedTool {
    readonly name: string;
    readonly description: string;
    readonly parameters: any;
    readonly output: any;
    readonly execute: (...args: any[]) => any;
  }

  /** The call that execute runs for. */
  interface Exec {
    readonly callId: string;
    readonly rootCallId: string;
    readonly name: string;
    readonly arguments: any;
    /** Fires when the caller gave up or the time is over. */
    readonly signal: AbortSignal;
    /** Shows live output to whoever watches; it is no part of the result. */
    progress(report: string | { text?: string; done?: number; total?: number }): void;
    /** Adds a message that follows the result in the conversation. */
    deferContext(message: ContextMessage): void;
    /** Asks the loop to end the turn after this call. */
    concludeTurn(): void;
  }

  interface Harness {
    /** Checks a tool; it can be called when it is registered. */
    defineTool<A = any, V = any>(options: ToolOptions<A, V>): DefinedTool;
    /** Registers a tool, and gives the function that removes it. */
    registerTool(ctx: Context, tool: DefinedTool): Disposer;
  }

  interface ListenOptions {
    /** true: before the listeners that are there. */
    prepend?: boolean;
    /** true: for the first time only. */
    once?: boolean;
  }

  /** What every ctx has. */
  interface Verbs {
//on
//once
    /** Offers a service to other plugins, and gives the function that takes it back. */
    provide(name: string, value: any): Disposer;
    /** Runs setup now, and at unmount what it returned. */
    effect(setup: () => Cleanup, label?: string): Disposer;
    /** A service that the plugin injects; undefined while an optional one is absent. */
    get<K extends keyof Services>(name: K): Services[K] | undefined;
    get(name: string): any;
  }

  /** What apply gets. Services of other plugins are members, too. */
  interface Context extends Verbs, Services, Timer {
    [service: string]: any;
  }

  /** The services of the harness, by the names that inject takes. */
  interface Services {
//services
  }

//types
}

declare const harness: dsh.Harness;

declare const console: {
  /** The last 200 lines can be read with cordis_inspect. */
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
  dir(value: any): void;
  trace(...values: any[]): void;
  assert(ok: any, ...values: any[]): void;
};

interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: { type: 'abort'; target: AbortSignal }) => void) | null;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: (event: { type: 'abort'; target: AbortSignal }) => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: (event: { type: 'abort'; target: AbortSignal }) => void): void;
}
declare const AbortSignal: { abort(reason?: any): AbortSignal; any(signals: Iterable<AbortSignal>): AbortSignal };
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class TextEncoder {
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: Uint8Array | ArrayBuffer): string;
}
/** UTF-8, not Latin-1. */
declare function btoa(text: string): string;
/** UTF-8, not Latin-1. */
declare function atob(text: string): string;
declare function structuredClone<T>(value: T): T;
declare function queueMicrotask(fn: () => void): void;
