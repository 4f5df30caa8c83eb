return {
  name: 'heartbeat',
  inject: ['tools', 'timer'],
  apply(ctx) {
    let beats = 0
    ctx.setInterval(() => beats++, 5)
    harness.registerTool(ctx, harness.defineTool({
      name: 'pulse',
      description: 'Whether the heart beats.',
      parameters: {},
      isConcurrencySafe: () => true,
      output: {
        schema: { type: 'boolean' },
        render: (args, beating) => [{ type: 'text', text: beating ? 'It beats.' : 'Silence.' }],
      },
      async execute() {
        const before = beats
        await ctx.timeout(60)
        return beats > before
      },
    }))
  },
}
