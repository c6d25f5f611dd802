import { type Approve, needsApproval, splitPlace, toApprove } from './approve.ts'
import type { Config } from '../config/load.ts'
import type { Rule } from '../config/rule.ts'
import { warn, type Warning } from '../config/warning.ts'

/** Places of `approve.by` that ask in vain. */
export const approveWarnings = ({ webhooks, gateway }: Config): Warning[] =>
  webhooks
    .filter(({ enabled }) => enabled)
    .flatMap(({ path, rules }) =>
      rules.flatMap((rule) => {
        const approve = rule.dryRun ? undefined : toApprove(rule.approve, gateway.approve)
        const name = rule.name === undefined ? path : `${path} ${rule.name}`
        return approve ? vainPlaces(`webhook ${name}`, rule, approve, path) : []
      }),
    )

const vainPlaces = (name: string, rule: Rule, approve: Approve, webhook: string): Warning[] => {
  const { by, who } = approve
  const about = { webhook }
  const kinds = [...new Set(by.map((one) => splitPlace(one)[0]))]
  return [
    ...(kinds.includes('check') && !rule.check
      ? warn(
          'approve-without-check',
          `${name}: approve asks by check, and the rule makes no check: nothing is asked there`,
          'write check: true, which needs a bot (doorward bot create github), or take check out of by',
          about,
        )
      : []),
    ...kinds.flatMap((kind) => {
      const isEmpty =
        kind === 'check' ? who.github === undefined : isChat(kind) && !who[kind]?.length
      const key = kind === 'check' ? 'github' : kind
      return isEmpty
        ? warn(
            'approve-by-no-one',
            `${name}: approve asks by ${kind}, and approve.who names no one there: no one may answer there`,
            `write who: { ${key}: ${key === 'github' ? 'write' : '[<id>]'} }, or answer by the desktop, the page or doorward events approve`,
            about,
          )
        : []
    }),
    ...(rule.targets.some(({ kind }) => needsApproval(approve, kind))
      ? []
      : warn(
          'approve-without-effect',
          `${name}: approve asks about nothing, as no target of the rule needs it`,
          'take approve out, or name the kinds of its targets in approve.when',
          about,
        )),
  ]
}

const isChat = (kind: string): kind is 'slack' | 'telegram' =>
  kind === 'slack' || kind === 'telegram'
