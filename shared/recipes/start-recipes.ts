import { says } from '../agents/budget.ts'
import type { Agent } from '../agents/schema.ts'
import { digestName } from './new-schedule.ts'
import { recipes } from './presets.ts'
import type { WrittenRule } from './rule-recipes.ts'

/* The recipes of the page: what each asks for, and the brakes with which its rule begins. */

/** What a recipe needs to know: a plain value, or a secret that goes into the variable `env`. */
export type RecipeField = {
  readonly name: 'repo' | 'folder' | 'from' | 'secret' | 'appToken' | 'botToken'
  readonly label: string
  readonly help: string
  readonly isNeeded: boolean
  readonly env?: string
}

export type StartRecipe = {
  readonly name: string
  readonly title: string
  readonly fields: readonly RecipeField[]
}

const ofRepository: RecipeField = {
  name: 'repo',
  label: 'Repository',
  help: 'owner/name; without one every repository whose events arrive',
  isNeeded: false,
}

const fieldsOf: Readonly<Record<string, readonly RecipeField[]>> = {
  'github-review': [ofRepository],
  'github-mention': [ofRepository],
  'github-fix': [ofRepository],
  'ci-failure': [ofRepository],
  'sentry-fix': [
    {
      ...ofRepository,
      label: 'Repository of the code',
      help: 'owner/name at GitHub',
      isNeeded: true,
    },
    {
      name: 'secret',
      label: 'Client secret',
      help: 'of your internal integration at Sentry',
      isNeeded: true,
      env: 'SENTRY_WEBHOOK_SECRET',
    },
  ],
  'slack-agent': [
    {
      name: 'appToken',
      label: 'App-level token',
      help: 'begins with xapp-',
      isNeeded: true,
      env: 'SLACK_APP_TOKEN',
    },
    {
      name: 'botToken',
      label: 'Bot token',
      help: 'begins with xoxb-',
      isNeeded: true,
      env: 'SLACK_BOT_TOKEN',
    },
  ],
  'telegram-agent': [
    {
      name: 'from',
      label: 'Your id in Telegram',
      help: 'a number such as 123456789: only you are answered',
      isNeeded: true,
    },
    {
      name: 'botToken',
      label: 'Token of the bot',
      help: 'from @BotFather',
      isNeeded: true,
      env: 'TELEGRAM_BOT_TOKEN',
    },
  ],
  [digestName]: [
    {
      name: 'folder',
      label: 'Folder of the repository',
      help: 'a clone on this machine, such as ~/code/shop',
      isNeeded: true,
    },
  ],
}

export const startRecipes: readonly StartRecipe[] = Object.entries(fieldsOf).map(
  ([name, fields]) => ({
    name,
    title: recipes[name] ?? 'Every Monday: what was committed in a week',
    fields,
  }),
)

/** `dry_run` and a budget for a new rule, as lines without indentation and as their value. */
export const brakesFor = (agent: Agent): WrittenRule => {
  const { usd, tokens } = says(agent)
  const limit: WrittenRule = usd
    ? { lines: ['budget: { day: 2 }'], value: { budget: { day: 2 } } }
    : tokens
      ? { lines: ['budget: { day: 1m tokens }'], value: { budget: { day: '1m tokens' } } }
      : { lines: [], value: {} }
  return {
    lines: [
      '# Answers are shown and not sent; without this line they are.',
      'dry_run: true',
    ].concat(limit.lines),
    value: { dry_run: true, ...limit.value },
  }
}
