import { z } from 'zod'
import { parseTemplate } from '../templates.ts'
import { isOutputsKind, type SentKind } from './schema.ts'
import { subject, type Target } from './targets.ts'

/*
 * `outputs` of a rule: the requests that an answer may have besides its text. The address is that of
 * the event; an answer names none.
 */

const many = (usual: number, what: string) =>
  z
    .int()
    .min(1)
    .max(20)
    .default(usual)
    .describe(`How many ${what} one answer may request, at most 20. Default ${usual}.`)

const name = z.string().regex(/^\S(?:[^\p{C}]{0,253}\S)?$/u, 'not a name of at most 255 characters')
const names = z.array(name).min(1).max(1000)

const outputsShape = z.strictObject({
  labels: z
    .strictObject({
      allowed: names
        .optional()
        .describe(
          'The labels that may be set, by name or as area/*. Default: any of the repository.',
        ),
      max: many(3, 'labels'),
    })
    .optional()
    .describe(
      'Sets labels that the repository has, on the issue or pull request: a map of allowed and max.',
    ),
  comment: z
    .strictObject({ max: many(1, 'comments') })
    .optional()
    .describe('Comments there: a map of max, or {}.'),
  issue: z
    .strictObject({
      max: many(1, 'issues'),
      title_prefix: z
        .string()
        .regex(/^[^\p{C}]{1,50}$/u, 'not one line of at most 50 characters')
        .optional()
        .describe('What the titles begin with. Default: nothing.'),
      labels: names.max(20).optional().describe('The labels of these issues. Default: none.'),
    })
    .optional()
    .describe('Opens issues in the repository: a map of max, title_prefix and labels, or {}.'),
  close: z
    .strictObject({
      own: z
        .boolean()
        .default(true)
        .describe('With true, only issues that doorward opened and no one edited. Default true.'),
      max: many(1, 'issues to close'),
    })
    .optional()
    .describe('Closes issues of the repository by number: a map of own and max, or {}.'),
  assign: z
    .strictObject({
      allowed: names.describe('Who may be assigned, by login. Required.'),
      max: many(1, 'people'),
    })
    .optional()
    .describe('Assigns people to the issue or pull request: a map of allowed and max.'),
  review: z
    .boolean()
    .optional()
    .describe(
      'With true, the answer is a review there, as by github-review: or gitlab-review:. Default false.',
    ),
  check: z
    .boolean()
    .optional()
    .describe('With true, it is a check of the commit, as by github-check:. Default false.'),
  'pull-request': z
    .boolean()
    .optional()
    .describe('With true, the change becomes a pull request, as by pull-request:. Default false.'),
  push: z
    .boolean()
    .optional()
    .describe('With true, the change is pushed to the pull request, as by push:. Default false.'),
})

export const outputsSchema = outputsShape.refine(
  // Without a key it says itself that it is empty, or its unknown keys are told.
  (outputs) => Object.keys(outputs).length === 0 || Object.values(outputs).some(Boolean),
  'allows nothing: write what an answer may request, as labels or comment',
)

export type OutputSettings = z.output<typeof outputsSchema>

/** The keys of an answer that are requests. The others of `outputs` are targets. */
export const requestKinds = ['labels', 'assign', 'comment', 'issue', 'close'] as const
export type RequestKind = (typeof requestKinds)[number]

/** True where an answer may request something. */
export const takesRequests = (outputs: OutputSettings): boolean =>
  requestKinds.some((kind) => outputs[kind] !== undefined)

/** One step at the place of the event. */
export type OutputAction =
  | { readonly kind: 'labels'; readonly labels: readonly string[] }
  | { readonly kind: 'assign'; readonly assign: readonly string[] }
  | { readonly kind: 'comment'; readonly body: string }
  | {
      readonly kind: 'issue'
      readonly title: string
      readonly body: string
      readonly labels: readonly string[]
    }
  | { readonly kind: 'close'; readonly number: number; readonly own: boolean }

const senders = ['github', 'gitlab'] as const
type OutputSender = (typeof senders)[number]

const isOutputSender = (scheme: string): scheme is OutputSender =>
  (senders as readonly string[]).includes(scheme)

/** The targets that `outputs` stands for, at what the event is about. */
export const toOutputTargets = (outputs: OutputSettings | undefined, scheme: string): Target[] => {
  if (!outputs || !isOutputSender(scheme)) return []
  const kinds: readonly (SentKind | false | undefined)[] = [
    takesRequests(outputs) && `${scheme}-outputs`,
    outputs.review && `${scheme}-review`,
    outputs.check && 'github-check',
    outputs['pull-request'] && 'pull-request',
    outputs.push && 'push',
  ]
  const address = parseTemplate(subject)
  return kinds.flatMap((kind) =>
    kind ? [{ text: isOutputsKind(kind) ? 'outputs' : `outputs: ${kind}`, kind, address }] : [],
  )
}

/** Checks what the schema cannot. */
export const checkOutputs = (
  { outputs }: { readonly outputs?: OutputSettings | undefined },
  scheme: string,
  report: (field: 'outputs', reason: string, hint?: string) => void,
): void => {
  if (!outputs) return
  if (!isOutputSender(scheme)) {
    report(
      'outputs',
      `only events of GitHub and GitLab have a place for it, and signature_scheme is ${scheme}`,
      'write signature_scheme: github or gitlab, or use deliver_to',
    )
    return
  }
  const foreign = (['check', 'pull-request', 'push'] as const).find((key) => outputs[key])
  if (scheme === 'gitlab' && foreign)
    report('outputs', `${foreign} is for GitHub alone`, 'remove it')
}
