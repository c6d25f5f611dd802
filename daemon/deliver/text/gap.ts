/** Zero width space: breaks a name apart without being seen. */
export const gap = '\u200b'
