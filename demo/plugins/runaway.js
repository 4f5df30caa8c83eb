return {
  name: 'runaway',
  inject: ['tools'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'count_for_ever',
      description: 'Count all numbers.',
      parameters: {},
      isConcurrencySafe: () => true,
      output: {
        schema: { type: 'integer' },
        render: (args, n) => [{ type: 'text', text: String(n) }],
      },
      execute() {
        let n = 0
        for (;;) { try { for (;;) n++ } catch { } finally { continue } }
      },
    }))
  },
}
