"""Moving in and out: jobs of other schedulers as jobs of Wakeful, and a store as plain files.

What must stay true:
- nothing is changed before a person says so, and then all of it is, or nothing;
- nothing that is read is run: modules are not imported, and pickles name nothing but records;
- every entry is accounted for: it maps, it maps with a difference that is said, or it is refused with the reason;
- importing twice changes nothing the second time, and no secret leaves with an export.
"""
