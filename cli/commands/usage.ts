import type { UsageGroup, UsageReport } from '../../shared/api/api.ts'
import { formatTokens, formatUsd } from '../../shared/event-stages.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { Context } from '../context.ts'
import { withDaemon } from '../daemon-client/ensure.ts'
import { tableLines } from '../terminal/table.ts'

/** Prints what runs have used since a time, in groups, those that cost most first. Throws `request-invalid`. */
export const showUsage = async (
  context: Context,
  _words: readonly string[],
  { since, by }: { readonly since: string; readonly by: UsageGroup },
): Promise<void> => {
  const { terminal } = context
  const query = new URLSearchParams({ since, by }).toString()
  const report = await withDaemon(context, (client) => client.get<UsageReport>(`/usage?${query}`))
  if (terminal.json) return terminal.printJson(report)
  if (report.rows.length === 0) return terminal.say('no run has said what it used')
  const rows = [...report.rows, { key: 'total', ...report.total }].map(
    ({ key, runs, inputTokens, outputTokens, cachedTokens, costUsd }) => [
      toPlainLine(key),
      String(runs),
      formatTokens(inputTokens),
      formatTokens(cachedTokens),
      formatTokens(outputTokens),
      costUsd === undefined ? '-' : formatUsd(costUsd),
    ],
  )
  const header = [by.toUpperCase(), 'RUNS', 'INPUT', 'CACHED', 'OUTPUT', 'COST']
  for (const line of tableLines([header, ...rows], terminal.columns, [], 0)) terminal.print(line)
}
