// Loaded before a program of dist/bin (`node --require`): has it leave, when it ends, the code that V8 has
// made of its files, beside them. Of what ran only; the rest is compiled when it is needed, as ever.
'use strict'
const { renameSync, rmSync, writeFileSync } = require('node:fs')
const { setFlagsFromString } = require('node:v8')

const loaded = []
globalThis[Symbol.for('doorward.loaded')] = loaded

process.on('exit', () => {
  // The daemon changes these while it runs, and V8 takes code of the same flags only.
  for (const flag of ['--allocation-site-pretenuring', '--no-expose-gc']) setFlagsFromString(flag)
  for (const { script, compiledPath, seal } of loaded) {
    const code = script.createCachedData()
    const unfinished = `${compiledPath}.${process.pid}`
    try {
      writeFileSync(unfinished, Buffer.concat([seal(code), code]))
      renameSync(unfinished, compiledPath)
    } catch (error) {
      rmSync(unfinished, { force: true })
      throw error
    }
  }
})
