import { readFileSync } from 'node:fs'
import { readYaml } from '../config/yaml.ts'
import { DoorwardError } from '../errors.ts'
import type { SchemeName } from '../signatures/presets.ts'
import { packageFolder } from '../version.ts'
import { yamlText } from '../config-edit/add-entry.ts'

/*
 * Whole rules for `webhook add`, as the pages of docs/ show them: assets/recipes has the text of each, for an agent
 * and a repository of an example.
 */

export type RuleRecipe = {
  readonly scheme: SchemeName
  readonly title: string
  /** The use that its agent makes of the checkout. */
  readonly access: 'read' | 'write'
  /** Its events name no repository. */
  readonly needsRepo?: true
  /** What is left to do when it is there, besides login and hook. */
  readonly last: string
  /** An event that it is for. */
  readonly sample?: string
}

export const ruleRecipes: Readonly<Record<string, RuleRecipe>> = {
  'github-mention': {
    scheme: 'github',
    title: 'GitHub: answers to comments that name it',
    access: 'read',
    last: 'write a comment on a pull request that begins with @doorward',
    sample: 'github:issue_comment.created',
  },
  'github-fix': {
    scheme: 'github',
    title: 'GitHub: a pull request for an issue with the label doorward',
    access: 'write',
    last: 'give an issue the label doorward',
  },
  'ci-failure': {
    scheme: 'github',
    title: 'GitHub: why a build failed',
    access: 'read',
    last: 'push something to a pull request whose workflow fails',
    sample: 'github:workflow_run.completed',
  },
  'sentry-fix': {
    scheme: 'sentry',
    title: 'Sentry: a pull request for an error',
    access: 'write',
    needsRepo: true,
    last: 'add an alert rule at Sentry that notifies the integration',
  },
}

export const findRuleRecipe = (name: string | undefined): RuleRecipe | undefined =>
  name !== undefined && Object.hasOwn(ruleRecipes, name) ? ruleRecipes[name] : undefined

/** A rule as lines of YAML, whose first begins with `- name:`, and as the value that they are read as. */
export type WrittenRule = {
  readonly lines: readonly string[]
  readonly value: Readonly<Record<string, unknown>>
}

export const readRecipe = (name: string): string =>
  readFileSync(new URL(`assets/recipes/${name}.yaml`, packageFolder), 'utf8')

type Chosen = {
  readonly agent: string
  /** `owner/name`: for Sentry that of the code, else the only one whose events run the rule. */
  readonly repo: string | undefined
  /** The bot that people speak to, by its slug. */
  readonly bot: string | undefined
  /** Names of rules that are there already. */
  readonly taken: readonly string[]
}

const exampleRepo = 'acme/shop'

/** The rule of a recipe with these choices. Throws `usage` for one that needs a repository. */
export const writeRule = (recipe: string, { agent, repo, bot, taken }: Chosen): WrittenRule => {
  const { needsRepo } = findRuleRecipe(recipe) ?? {}
  if (needsRepo && repo === undefined)
    throw new DoorwardError('usage', `${recipe} needs the repository of the code`, {
      hint: `write --repo owner/name`,
    })
  if (repo !== undefined && !/^[A-Za-z0-9][\w-]{0,99}\/[\w.-]{1,100}$/.test(repo))
    throw new DoorwardError('usage', `--repo ${repo} is not owner/name`)
  const text = readRecipe(recipe)
  const lines = (needsRepo ? text.replaceAll(exampleRepo, repo ?? '') : text)
    .trimEnd()
    .split('\n')
    .map((line) => {
      if (line.startsWith('- name: ')) return `- name: ${freeName(line.slice(8), repo, taken)}`
      if (line.startsWith('  agent: ')) return `  agent: ${yamlText(agent)}`
      return line.startsWith('  mention: ') && bot !== undefined ? `  mention: '@${bot}'` : line
    })
  const written = needsRepo || repo === undefined ? lines : limitTo(lines, repo)
  const { value } = readYaml('', written.join('\n'))
  const [rule = {}] = value as readonly WrittenRule['value'][]
  return { lines: written, value: rule }
}

/** Two rules of an entry have two names. */
const freeName = (name: string, repo: string | undefined, taken: readonly string[]): string => {
  const names = [name, ...(repo === undefined ? [] : [`${name}-${repo.split('/')[1]}`])]
  for (let number = 2; number <= taken.length + 2; number += 1) names.push(`${name}-${number}`)
  return names.find((one) => !taken.includes(one)) ?? name
}

/** Adds the repository to the filter, which stands behind `on`. */
const limitTo = (lines: readonly string[], repo: string): string[] => {
  const condition = `    repository.full_name: ${repo}`
  const filter = lines.indexOf('  filter:')
  const on = lines.findIndex((line) => line.startsWith('  on: '))
  return filter === -1
    ? lines.toSpliced(on + 1, 0, '  filter:', condition)
    : lines.toSpliced(filter + 1, 0, condition)
}
