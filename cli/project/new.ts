// A plugin of dsh. It runs in a worker process, and gets the services that inject names.
// A saved change is live at once where dsh runs, and refused where it does not load.
// dsh plugin check __NAME__ says what it registers.

export const name = '__NAME__';
export const inject = ['tools'];

// What cordis.yml may give it:
//   - id: __NAME__
//     name: ./plugins/__NAME__.ts
//     config: { greeting: Good morning }
export const Config = {
  greeting: { type: 'string', description: 'how to greet', default: 'Hello' },
};

export function apply(ctx: dsh.Context, config: { greeting: string }): void {
  harness.registerTool(ctx, harness.defineTool<{ who: string }, string>({
    name: '__TOOL___greet',
    description: 'Greets somebody by name.',
    parameters: { who: { type: 'string', description: 'whom to greet', required: true } },
    output: {
      schema: { type: 'string' },
      render: (_args, value) => [{ type: 'text', text: value }],
    },
    execute: (args) => `${config.greeting}, ${args.who}!`,
  }));
}
