import { type OutputSettings, takesRequests } from '../../../shared/targets/outputs.ts'

/** The requests that an answer may have, in words for the model that writes it; empty for nothing. */
export const describeOutputs = (settings: OutputSettings | undefined): string => {
  if (!settings || !takesRequests(settings)) return ''
  return [
    'Besides your answer you may request the following. Write the requests as one fenced block of JSON at its end: one object with only the keys that you need. Write no block where you request nothing.',
    ...describeEach(settings).map((line) => `- ${line}`),
    'Anything else is dropped. The issue or pull request is always that of this event: name none.',
  ].join('\n')
}

/** A line for each kind of request. */
export const describeEach = ({
  labels,
  assign,
  comment,
  issue,
  close,
}: OutputSettings): readonly string[] => [
  ...(labels
    ? [`"labels": a list of at most ${labels.max} of ${listAllowed(labels.allowed)}`]
    : []),
  ...(assign
    ? [`"assign": a list of at most ${assign.max} of ${listAllowed(assign.allowed)}`]
    : []),
  ...(comment ? [`"comment": ${textOrList(comment.max, 'the text of a comment')}`] : []),
  ...(issue
    ? [
        `"issue": ${textOrList(issue.max, 'an object with the texts "title" and "body" of a new issue')}`,
      ]
    : []),
  ...(close
    ? [
        `"close": a list of at most ${close.max} numbers of issues to close${close.own ? ', only those that doorward opened' : ''}`,
      ]
    : []),
]

const listAllowed = (names: readonly string[] | undefined): string =>
  names === undefined ? 'the labels that the repository has' : names.join(', ')

const textOrList = (max: number, what: string): string =>
  max === 1 ? what : `${what}, or a list of at most ${max}`
