const common = new Set(
  ('the and that are not for with its into from has what which one can all this them they ' +
    'there then than when where will would every only how any does but you').split(' '))
return {
  name: 'stopwords',
  apply(ctx) {
    ctx.provide('stopwords', { has: (word) => common.has(word) })
  },
}
