import { sameJob } from './goals.ts'
import type { Row } from './rows.ts'
import type { Sample } from './sample.ts'
import { asMarkdown, goalsTable, growthTable } from './table.ts'

/** The text of bench/RESULTS.md. */
export const results = ({
  machine,
  rows,
  growth,
  date,
}: {
  readonly machine: readonly string[]
  readonly rows: readonly Row[]
  readonly growth: readonly Sample[]
  readonly date: Date
}): string => {
  const judged = rows.filter(({ holds }) => holds !== undefined)
  const missed = judged.filter(({ holds }) => holds === false)
  const list = missed.map(({ row, measure, goal }) => `- ${row}, ${measure}: ${goal}`).join('\n')
  return `# Measured

Written by \`npm run bench\` on ${date.toISOString().slice(0, 10)}; README.md beside it says how to read it.

${machine.map((line) => `- ${line}`).join('\n')}

${judged.length - missed.length} of ${judged.length} goals hold.${missed.length === 0 ? '' : ` Missed:\n\n${list}`}

${asMarkdown(goalsTable(rows))}

## Beside programs that do the same job

${describePeers(rows)}

## Growth

A daemon of its own for each line, 200 posts of 24 KB a second; each of its lines is one state of the same work.

${asMarkdown(growthTable(growth))}
`
}

const names = {
  'adnanh, runs':
    'adnanh/webhook checks the signature and runs a program for each post. It has no queue, no limit of programs, no log of events, no retry, no login and no delivery of the answer.',
  openclaw:
    "openclaw's hooks take a bearer token, make a line of the payload and queue it for an agent. They check no signature of a sender.",
  gh: '`gh auth token` prints a token of GitHub, without a daemon.',
  'oidc-agent':
    '`oidc-token` prints a token of an agent that renews it, without a command of its own.',
} as const

/** How doorward compares with each of them, in words: `row: 6.3 × as many`. */
const describePeers = (rows: readonly Row[]): string => {
  const loads = rows.filter(({ measure }) => measure === 'answers/s')
  const [token] = rows.filter(({ row }) => row === 'doorward oauth token')
  const lines = [
    ...sameJob.map((peer) =>
      lineOf(
        peer,
        loads.flatMap(({ row, times: { [peer]: times } }) =>
          times === undefined ? [] : [`${row}: ${times.toFixed(1)} × as many answers`],
        ),
      ),
    ),
    ...(['gh', 'oidc-agent'] as const).map((peer) => {
      const times = token?.times[peer]
      const found =
        times === undefined ? [] : [`\`oauth token\` takes ${times.toFixed(1)} × as long`]
      return lineOf(peer, found)
    }),
    '- bare `node:http` and Koa only check the signature and parse the payload: they show what the rest of the way costs.',
  ]
  return lines.join('\n')
}

const lineOf = (peer: keyof typeof names, found: readonly string[]): string =>
  `- ${names[peer]} ${found.length === 0 ? 'Not measured here.' : `Doorward: ${found.join('; ')}.`}`
