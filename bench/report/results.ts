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

## Growth

A daemon of its own for each line, 200 posts of 24 KB a second; each of its lines is one state of the same work.

${asMarkdown(growthTable(growth))}
`
}
