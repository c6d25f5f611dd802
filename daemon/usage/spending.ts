import type { StatusProblem } from '../../shared/api/api.ts'
import type { Amount, Budget } from '../../shared/agents/budget.ts'
import { aboutRule, enabledDefinitions } from '../../shared/schedules/definitions.ts'
import type { Config } from '../../shared/config/load.ts'
import type { Rule } from '../../shared/config/rule.ts'
import type { About } from '../../shared/errors.ts'
import { formatTokens, formatUsd } from '../../shared/event-stages.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Run, Sum, UsageLog } from './usage-log.ts'

/** One amount of a budget, and the runs that it is for. */
type Limit = {
  readonly of: Partial<Run>
  /** `rule /webhook/github review`, or `all runs`. */
  readonly what: string
  readonly about: About
  readonly per: 'day' | 'month'
  readonly most: Amount
}

/** A rule of the webhook at this path. */
type RuleAt = Pick<Rule, 'name' | 'agentName' | 'agent' | 'budget'> & { readonly path: string }

/** Percent of a budget at which its owner is told. */
const steps = [50, 80, 100] as const

/** Compares what runs have used with the budgets of their rule, their agent and all. */
export class Spending {
  readonly #usage: UsageLog
  readonly #config: () => Config

  /** Each step is an event, once: what crosses it is a run. */
  constructor(usage: UsageLog, config: () => Config, events: Pick<EventStore, 'add'>) {
    this.#usage = usage
    this.#config = config
    usage.follow((run, used) => {
      const usd = used.costUsd ?? 0
      const tokens = (used.inputTokens ?? 0) + (used.outputTokens ?? 0)
      for (const limit of this.#all()) {
        if (limit.of.rule !== undefined && limit.of.rule !== run.rule) continue
        if (limit.of.agent !== undefined && limit.of.agent !== run.agent) continue
        const now = this.#share(limit)
        const before = now - (100 * ('usd' in limit.most ? usd : tokens)) / toNumber(limit.most)
        const step = steps.findLast((one) => before < one && now >= one)
        if (step === undefined) continue
        const { about } = limit
        events.add(new Date(), {
          kind: 'daemon',
          state: 'done',
          code: 'budget-used',
          detail: describeUse(limit, step),
          about,
        })
      }
    })
  }

  /** The budget that leaves a rule no run; undefined where it may run. */
  over(rule: RuleAt): string | undefined {
    const limit = limitsOf(rule, this.#config()).find((one) => this.#share(one) >= 100)
    return limit && describeUse(limit, 100)
  }

  /** The budgets that are nearly or wholly used. */
  problems(): StatusProblem[] {
    return this.#all().flatMap((limit) => {
      const share = this.#share(limit)
      if (share < 80) return []
      const { about, per } = limit
      const detail = describeUse(limit, share < 100 ? 80 : 100)
      return { code: 'budget-used', detail, hint: `raise it, or wait for the next ${per}`, about }
    })
  }

  /** Each once, whatever number of rules an agent has. */
  #all(): Limit[] {
    const config = this.#config()
    const rules = enabledDefinitions(config).flatMap(({ path, rules }) =>
      rules.map((rule) => ({ ...rule, path })),
    )
    return [
      ...rules.flatMap(limitsOfRule),
      ...[...config.agents].flatMap(([name, agent]) => limitsOfAgent(name, agent)),
      ...limitsOfAll(config),
    ]
  }

  #share({ of, per, most }: Limit): number {
    const sum = this.#usage.spent(of)[per]
    return (100 * spentIn(sum, most)) / toNumber(most)
  }
}

const limitsOf = (rule: RuleAt, config: Config): Limit[] => [
  ...limitsOfRule(rule),
  ...limitsOfAgent(rule.agentName, rule.agent),
  ...limitsOfAll(config),
]

const limitsOfRule = ({ path, name, budget }: RuleAt): Limit[] => {
  const rule = name === undefined ? path : `${path} ${name}`
  return toLimits(budget, {
    of: { rule },
    what: `rule ${rule}`,
    about: { file: 'config/webhooks.yaml', ...aboutRule(path) },
  })
}

const limitsOfAgent = (name: string, { budget }: Rule['agent']): Limit[] =>
  toLimits(budget, {
    of: { agent: name },
    what: `agent ${name}`,
    about: { agent: name, file: 'config/agents.yaml' },
  })

const limitsOfAll = ({ gateway }: Config): Limit[] =>
  toLimits(gateway.budget, {
    of: {},
    what: 'all runs',
    about: { file: 'config/gateway.yaml' },
  })

const toLimits = (
  budget: Budget | undefined,
  rest: Pick<Limit, 'of' | 'what' | 'about'>,
): Limit[] =>
  (['day', 'month'] as const).flatMap((per) => {
    const most = budget?.[per]
    return most ? [{ ...rest, per, most }] : []
  })

const toNumber = (amount: Amount): number => ('usd' in amount ? amount.usd : amount.tokens)

const spentIn = ({ costUsd = 0, inputTokens, outputTokens }: Sum, most: Amount): number =>
  'usd' in most ? costUsd : inputTokens + outputTokens

/** In words that stay the same until the next step, so that a notification comes once. */
const describeUse = (limit: Limit, step: number): string =>
  `${describe(limit)} is used ${step === 100 ? 'up' : `to ${step} %`}`

/** `the budget of $5.00 a day of rule /webhook/github` */
const describe = ({ what, per, most }: Limit): string => {
  const amount = 'usd' in most ? formatUsd(most.usd) : `${formatTokens(most.tokens)} tokens`
  return `the budget of ${amount} a ${per} of ${what}`
}
