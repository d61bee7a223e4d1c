"""The field set of other languages: packages in JavaScript, TypeScript and Go that nobody here wrote.

Only names, versions, hashes and the descriptions of bugs are kept here; code is fetched and made anew.
"""
