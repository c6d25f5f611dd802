import assert from 'node:assert/strict'
import { join } from 'node:path'
import { chmod, writeFile } from 'node:fs/promises'
import { runCli } from '../../../daemon/agents/cli-agent.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import { SpendingWatch } from '../../../daemon/agents/spending-watch.ts'
import { agentSchema, type CliAgent } from '../../../shared/agents/schema.ts'
import type { Usage } from '../../../shared/api/api.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const step = (id: string, cost: unknown) =>
  `${JSON.stringify({ type: 'step_finish', part: { id, cost, tokens: { input: 10, output: 5, reasoning: 0, cache: { read: 0, write: 0 } } } })}\n`

describe('what a run of OpenCode costs while it goes on', () => {
  it('is the sum of its steps, each once, whatever pieces they come in', () => {
    const watch = new SpendingWatch(1)
    const text = `${step('a', 0.4)}${step('a', 0.4)}not JSON step_finish\n${step('x', -5)}${step('y', '9')}${step('b', 0.5)}`
    for (const byte of Buffer.from(text)) watch.read(Buffer.from([byte]))
    assert.equal(watch.signal.aborted, false)
    watch.read(Buffer.from(step('c', 0.2)))
    assert.equal(watch.signal.aborted, true)
  })

  it('ends the run where it passes the budget, with what it has cost', async () => {
    const bin = await temporaryFolder()
    const program = join(bin, 'opencode')
    await writeFile(
      program,
      `#!/bin/sh\nprintf '%s' '${step('a', 0.3)}${step('b', 0.3)}'\nexec sleep 600\n`,
    )
    await chmod(program, 0o700)
    let used: Usage | undefined
    const home = await temporaryFolder()
    await assert.rejects(
      runCli(
        agentSchema.parse({
          kind: 'opencode',
          budget: { run: 0.5 },
          sandbox: 'off',
        }) as CliAgent,
        'prompt',
        {
          env: { PATH: `${bin}:${process.env['PATH']}`, HOME: home },
          homeFolder: home,
          run: runProcess,
          getToken: async () => 'none',
          signal: new AbortController().signal,
          used: (usage) => (used = usage),
        },
      ),
      { code: 'budget-reached' },
    )
    assert.equal(used?.costUsd, 0.6)
  })
})
