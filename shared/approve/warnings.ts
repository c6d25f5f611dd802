import { type Approve, needsApproval, splitPlace, toApprove } from './approve.ts'
import { ownChat } from '../targets/targets.ts'
import type { About } from '../errors.ts'
import type { Config } from '../config/load.ts'
import type { Rule } from '../config/rule.ts'
import { aboutRule, describeRule, enabledDefinitions } from '../schedules/definitions.ts'
import { warn, type Warning } from '../config/warning.ts'

type AskingRule = {
  readonly rule: Rule
  readonly approve: Approve
  readonly name: string
  readonly about: About
}

const askingRules = (config: Config): AskingRule[] =>
  enabledDefinitions(config).flatMap(({ path, rules }) =>
    rules.flatMap((rule) => {
      const approve = rule.dryRun ? undefined : toApprove(rule.approve, config.gateway.approve)
      return approve
        ? { rule, approve, name: describeRule(path, rule), about: aboutRule(path) }
        : []
    }),
  )

/** Places of `approve.by` that ask in vain. */
export const approveWarnings = (config: Config): Warning[] =>
  askingRules(config).flatMap((asking) => vainPlaces(asking, config))

/** Rules that ask at the desktop alone, on a machine that has none. */
export const approveDesktopWarnings = (config: Config): Warning[] =>
  askingRules(config)
    .filter(({ approve }) => approve.by.every((place) => place === 'desktop'))
    .flatMap(({ name, about }) =>
      warn(
        'approve-without-desktop',
        `${name}: approve asks by desktop, and here is neither a desktop nor a tray: no one is told that an answer waits`,
        'write by: [slack:#channel], [telegram:@me] or [check], or look with: doorward events --state waiting',
        about,
      ),
    )

/** Why nothing is asked in a chat; undefined where it may be. */
const findMissing = (
  kind: 'slack' | 'telegram',
  { by }: Approve,
  config: Config,
): readonly [what: string, hint: string] | undefined => {
  const { telegram } = config.gateway.targets
  if (kind === 'slack')
    return enabledDefinitions(config).some(({ feed }) => feed?.kind === kind)
      ? undefined
      : [
          'no webhook hears its buttons',
          'write source: { provider: slack, mode: socket, app_token_env: … } for a webhook (doorward help slack)',
        ]
  if (telegram.token_env === undefined)
    return ['it has no bot', 'write targets.telegram.token_env in gateway.yaml']
  return by.includes(`telegram:${ownChat}`) && telegram.me === undefined
    ? [`${ownChat} is not known`, 'write targets.telegram.me, the number of your chat']
    : undefined
}

const vainPlaces = ({ name, rule, approve, about }: AskingRule, config: Config): Warning[] => {
  const { by, who } = approve
  const kinds = [...new Set(by.map((one) => splitPlace(one)[0]))]
  return [
    ...kinds.filter(isChat).flatMap((kind) => {
      const [what, hint] = findMissing(kind, approve, config) ?? []
      return what === undefined || hint === undefined
        ? []
        : warn(
            'approve-without-source',
            `${name}: approve asks by ${kind}, and ${what}: nothing is asked there`,
            hint,
            about,
          )
    }),
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
